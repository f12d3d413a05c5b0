# SPDX-License-Identifier: Apache-2.0
# What the fabric's transport `ofi` is compiled with: libfabric's headers alone. The library itself
# is loaded when it is first wanted (src/fabric/ofi/library.cpp), so nothing links against it.
find_path(ESPALIER_LIBFABRIC_INCLUDE_DIR rdma/fi_eq.h)
mark_as_advanced(ESPALIER_LIBFABRIC_INCLUDE_DIR)
if(NOT ESPALIER_LIBFABRIC_INCLUDE_DIR)
  message(FATAL_ERROR "The headers of libfabric are missing (rdma/fi_eq.h). "
                      "Debian's package libfabric-dev has them.")
endif()
add_library(espalier_libfabric_headers INTERFACE)
target_include_directories(espalier_libfabric_headers SYSTEM INTERFACE
  ${ESPALIER_LIBFABRIC_INCLUDE_DIR})
target_link_libraries(espalier_libfabric_headers INTERFACE ${CMAKE_DL_LIBS})
