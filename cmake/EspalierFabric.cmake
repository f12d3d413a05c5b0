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

# The same of AF_XDP's: headers of libxdp and libbpf, which src/fabric/xdp/library.cpp loads.
find_path(ESPALIER_LIBXDP_INCLUDE_DIR xdp/xsk.h)
find_path(ESPALIER_LIBBPF_INCLUDE_DIR bpf/bpf.h)
mark_as_advanced(ESPALIER_LIBXDP_INCLUDE_DIR ESPALIER_LIBBPF_INCLUDE_DIR)
if(NOT ESPALIER_LIBXDP_INCLUDE_DIR OR NOT ESPALIER_LIBBPF_INCLUDE_DIR)
  message(FATAL_ERROR "The headers of libxdp or libbpf are missing (xdp/xsk.h, bpf/bpf.h). "
                      "Debian's packages libxdp-dev and libbpf-dev have them.")
endif()
add_library(espalier_libxdp_headers INTERFACE)
target_include_directories(espalier_libxdp_headers SYSTEM INTERFACE
  ${ESPALIER_LIBXDP_INCLUDE_DIR} ${ESPALIER_LIBBPF_INCLUDE_DIR})
target_link_libraries(espalier_libxdp_headers INTERFACE ${CMAKE_DL_LIBS})
