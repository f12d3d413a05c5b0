# SPDX-License-Identifier: Apache-2.0
# The library espalier::node, for programs that start a node of their own (espalier/node.hpp):
# what `espalier serve` runs, without the command. It links what the node links.
set(objects)
foreach(module log chain offload peer node device node_api)
  list(APPEND objects $<TARGET_OBJECTS:espalier_${module}>)
endforeach()

add_library(espalier_with_node STATIC ${objects})
add_library(espalier::node ALIAS espalier_with_node)
set_target_properties(espalier_with_node PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME node
                                                    OUTPUT_NAME espalier-node)
# By their names, as the linker finds them where the package is installed.
set(node_libraries fmt ${httplib_LIBRARIES})
target_link_libraries(espalier_with_node INTERFACE
  espalier_with_regex $<BUILD_INTERFACE:fmt::fmt> $<BUILD_INTERFACE:espalier_httplib>
  "$<INSTALL_INTERFACE:${node_libraries}>")
add_dependencies(espalier_install espalier_with_node)
install(TARGETS espalier_with_node EXPORT espalier ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

list(TRANSFORM node_libraries PREPEND -l)
list(JOIN node_libraries " " node_libraries)
configure_file(${PROJECT_SOURCE_DIR}/cmake/espalier-node.pc.in
               ${PROJECT_BINARY_DIR}/espalier-node.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/espalier-node.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
