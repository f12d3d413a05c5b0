# SPDX-License-Identifier: Apache-2.0
# The library that applications link, and how they find it: a CMake package with the targets
# espalier::client and, for programs in C, espalier::c; and a pkg-config file. A second one,
# espalier::regex, is for those that search regular expressions in a store of their own.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(objects)
foreach(module base wire memory catalog crypto membership fabric rings dataplane tree table
               sequencer hash region embedding channel place client)
  get_target_property(type espalier_${module} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(APPEND objects $<TARGET_OBJECTS:espalier_${module}>)
  endif()
endforeach()

add_library(espalier STATIC ${objects})
add_library(espalier::client ALIAS espalier)
set_target_properties(espalier PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME client)
target_compile_features(espalier INTERFACE cxx_std_23)
target_include_directories(espalier INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(espalier INTERFACE Threads::Threads)

# By their names, as the linker finds them where the package is installed.
set(regex_libraries re2)
get_target_property(hyperscan espalier_hyperscan INTERFACE_LINK_LIBRARIES)
if(hyperscan)
  list(APPEND regex_libraries hs)
endif()
add_library(espalier_with_regex STATIC $<TARGET_OBJECTS:espalier_regex>)
add_library(espalier::regex ALIAS espalier_with_regex)
set_target_properties(espalier_with_regex PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME regex
                                                     OUTPUT_NAME espalier-regex)
target_link_libraries(espalier_with_regex INTERFACE
  espalier $<BUILD_INTERFACE:espalier_re2> $<BUILD_INTERFACE:espalier_hyperscan>
  "$<INSTALL_INTERFACE:${regex_libraries}>")

# What `cmake --install` wants built: whatever is installed here or elsewhere depends on it, which
# the test install.targets holds against the script of the installation.
add_custom_target(espalier_install)
add_dependencies(espalier_install espalier espalier_with_regex)
# What ./run builds: that, and the benchmarks, which are installed where they are there.
add_custom_target(espalier_run)
add_dependencies(espalier_run espalier_install)
if(TARGET espalier_quick AND NOT ESPALIER_SANITIZERS)
  # Tests install, and ./test compiles all that ./run does.
  add_dependencies(espalier_quick espalier_run)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/espalier)
install(TARGETS espalier espalier_with_regex EXPORT espalier
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/espalier DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(EXPORT espalier NAMESPACE espalier:: FILE espalier-targets.cmake DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/espalier-config.cmake.in
  ${PROJECT_BINARY_DIR}/espalier-config.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/espalier-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/espalier-config.cmake
        ${PROJECT_BINARY_DIR}/espalier-config-version.cmake DESTINATION ${package_dir})

# The prefix is told relative to the file, so that an installed tree can be moved.
file(RELATIVE_PATH prefix_from_pkgconfig /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/espalier.pc.in ${PROJECT_BINARY_DIR}/espalier.pc @ONLY)
list(TRANSFORM regex_libraries PREPEND -l)
list(JOIN regex_libraries " " regex_libraries)
configure_file(${PROJECT_SOURCE_DIR}/cmake/espalier-regex.pc.in
               ${PROJECT_BINARY_DIR}/espalier-regex.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/espalier.pc ${PROJECT_BINARY_DIR}/espalier-regex.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The command's manual pages, and what runs the node as a service, with the path of the program.
if(ESPALIER_BUILD_TOOLS)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/man/espalier.1
                ${PROJECT_SOURCE_DIR}/docs/man/espalier-bench.1
                ${PROJECT_SOURCE_DIR}/docs/man/espalier-serve.1
          DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  # Where programs go is known for sure when they are installed: `cmake --install` takes a prefix.
  # A stage (DESTDIR) is no part of it. Two may install at a time, each to its own prefix.
  install(CODE "
    set(ESPALIER_PROGRAM \"${CMAKE_INSTALL_BINDIR}/espalier\")
    if(NOT IS_ABSOLUTE \"\${ESPALIER_PROGRAM}\")
      get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
      set(ESPALIER_PROGRAM \"\${prefix}/\${ESPALIER_PROGRAM}\")
    endif()
    string(SHA1 unit \"\${ESPALIER_PROGRAM}\")
    set(unit \"${PROJECT_BINARY_DIR}/units/\${unit}/espalier.service\")
    configure_file(\"${PROJECT_SOURCE_DIR}/dist/espalier.service.in\" \"\${unit}\" @ONLY)
    file(INSTALL \"\${unit}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system\")")
  install(FILES ${PROJECT_SOURCE_DIR}/dist/espalier.sysusers DESTINATION lib/sysusers.d
          RENAME espalier.conf)
endif()
