# SPDX-License-Identifier: Apache-2.0
# Run by ctest: installs the build into a fresh prefix, moves it, and builds and runs the consumers
# against it, in C++ and in C, through the CMake package or through pkg-config (WAY).
set(work ${BUILD}/install_test/${WAY})
set(prefix ${work}/moved)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
# The unit of systemd starts what was installed, in its sandbox, and does not cut the node off from
# its network.
file(READ ${work}/prefix/lib/systemd/system/espalier.service service)
foreach(line "ExecStart=${work}/prefix/bin/espalier serve"
             "ExecStartPre=${work}/prefix/bin/espalier serve --check-config"
             "ExecReload=/bin/kill -HUP $MAINPID"
             "LimitCORE=0" "NoNewPrivileges=yes" "ProtectSystem=strict"
             "SystemCallFilter=@system-service")
  string(FIND "${service}" "\n${line}\n" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "the unit lacks '${line}':\n${service}")
  endif()
endforeach()
if(service MATCHES "\n *IPAddressDeny=" OR service MATCHES "@ESPALIER")
  message(FATAL_ERROR "the unit forbids node.fabric, or was not configured:\n${service}")
endif()
file(RENAME ${work}/prefix ${prefix})

if(WAY STREQUAL "package")
  run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer -B ${work}/build -G ${GENERATOR}
      -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${prefix})
  run(${CMAKE_COMMAND} --build ${work}/build)
  run(${work}/build/consumer)
  run(${work}/build/consumer_regex)
  run(${work}/build/consumer_offload ${work}/offload.socket)
  run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer/c -B ${work}/build_c -G ${GENERATOR}
      -D CMAKE_C_COMPILER=${C_COMPILER} -D CMAKE_PREFIX_PATH=${prefix})
  run(${CMAKE_COMMAND} --build ${work}/build_c)
  run(${work}/build_c/consumer)
else()
  find_program(PKG_CONFIG pkg-config REQUIRED)
  set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBRARIES}/pkgconfig)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs espalier OUTPUT_VARIABLE flags
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND ${flags})
  run(${COMPILER} -std=c++23 ${SOURCE}/tests/consumer/main.cpp -o ${work}/consumer ${flags})
  run(${work}/consumer)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs espalier-regex
                  OUTPUT_VARIABLE regex_flags OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(regex_flags UNIX_COMMAND ${regex_flags})
  run(${COMPILER} -std=c++23 ${SOURCE}/tests/consumer/regex.cpp -o ${work}/consumer_regex
      ${regex_flags})
  run(${work}/consumer_regex)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs espalier-node
                  OUTPUT_VARIABLE node_flags OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(node_flags UNIX_COMMAND ${node_flags})
  run(${COMPILER} -std=c++23 ${SOURCE}/tests/consumer/offload.cpp -o ${work}/consumer_offload
      ${node_flags})
  run(${work}/consumer_offload ${work}/offload.socket)
  run(${C_COMPILER} -std=c99 ${SOURCE}/tests/consumer/c/main.c -o ${work}/consumer_c ${flags})
  run(${work}/consumer_c)
endif()
