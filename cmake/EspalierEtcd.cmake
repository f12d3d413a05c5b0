# SPDX-License-Identifier: Apache-2.0
# What chains of nodes that are kept in etcd are compiled with: libcurl's headers alone. libcurl is
# loaded when etcd is first asked (src/chain/membership/curl_library.cpp), so nothing links against
# it. etcd's answers are read by headers alone.
find_package(nlohmann_json REQUIRED)
find_path(ESPALIER_CURL_INCLUDE_DIR curl/curl.h)
mark_as_advanced(ESPALIER_CURL_INCLUDE_DIR)
if(NOT ESPALIER_CURL_INCLUDE_DIR)
  message(FATAL_ERROR "The headers of libcurl are missing (curl/curl.h). "
                      "Debian's package libcurl4-openssl-dev has them.")
endif()
add_library(espalier_curl_headers INTERFACE)
target_include_directories(espalier_curl_headers SYSTEM INTERFACE ${ESPALIER_CURL_INCLUDE_DIR})
target_link_libraries(espalier_curl_headers INTERFACE ${CMAKE_DL_LIBS})
