// SPDX-License-Identifier: Apache-2.0
// OpenSSL's libcrypto, loaded when it is first wanted: nothing links against it, so a program that
// encrypts nothing runs where it is not installed.
//
// Thread: any; immutable.
#pragma once

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "espalier/error.hpp"

namespace espalier::crypto {

/// libcrypto's functions, of its interface 3.
struct CryptoFunctions {
  decltype(&EVP_CIPHER_CTX_new) cipher_new = nullptr;
  decltype(&EVP_CIPHER_CTX_free) cipher_free = nullptr;
  decltype(&EVP_aes_128_ctr) aes_128_ctr = nullptr;
  decltype(&EVP_EncryptInit_ex) encrypt_init = nullptr;
  decltype(&EVP_EncryptUpdate) encrypt_update = nullptr;
  decltype(&EVP_sha256) sha256 = nullptr;
  decltype(&HMAC) hmac = nullptr;
};

inline constexpr const char* kCryptoLibrary = "libcrypto.so.3";

/// Cost: loads the library at the first call, then a load of a pointer.
/// Errors: unsupported (it is not there, or has not these functions).
[[nodiscard]] Result<const CryptoFunctions*> crypto_functions();
/// The same of another file, each time anew.
[[nodiscard]] Result<CryptoFunctions> load_crypto(const char* name);

}  // namespace espalier::crypto
