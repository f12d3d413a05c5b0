# SPDX-License-Identifier: Apache-2.0
# What encrypted tables are compiled with: OpenSSL's headers alone. libcrypto is loaded when it is
# first wanted (src/crypto/crypto_library.cpp), so nothing links against it.
find_path(ESPALIER_OPENSSL_INCLUDE_DIR openssl/evp.h)
mark_as_advanced(ESPALIER_OPENSSL_INCLUDE_DIR)
if(NOT ESPALIER_OPENSSL_INCLUDE_DIR)
  message(FATAL_ERROR "The headers of OpenSSL are missing (openssl/evp.h). "
                      "Debian's package libssl-dev has them.")
endif()
add_library(espalier_openssl_headers INTERFACE)
target_include_directories(espalier_openssl_headers SYSTEM INTERFACE
  ${ESPALIER_OPENSSL_INCLUDE_DIR})
target_link_libraries(espalier_openssl_headers INTERFACE ${CMAKE_DL_LIBS})
