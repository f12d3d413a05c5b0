# SPDX-License-Identifier: Apache-2.0
# What the node needs, and libraries that applications link do not.
find_package(fmt REQUIRED)

# Its header alone, not the library that the package's own target links: sanitizers shall see into
# it, for it reads what people write.
find_package(tomlplusplus REQUIRED)
add_library(espalier_toml INTERFACE)
target_include_directories(espalier_toml SYSTEM INTERFACE
  $<TARGET_PROPERTY:tomlplusplus::tomlplusplus,INTERFACE_INCLUDE_DIRECTORIES>)

# Debian splits it into a header and a library, whose classes have members by these definitions; so
# whoever includes the header needs them, which is one source.
find_package(PkgConfig REQUIRED)
pkg_check_modules(httplib REQUIRED cpp-httplib)
add_library(espalier_httplib INTERFACE)
target_link_libraries(espalier_httplib INTERFACE ${httplib_LINK_LIBRARIES})
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/node/http_listener.cpp PROPERTIES
                            COMPILE_OPTIONS "${httplib_CFLAGS_OTHER}")
