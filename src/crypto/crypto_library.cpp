// SPDX-License-Identifier: Apache-2.0
#include "crypto/crypto_library.hpp"

#include <cstdint>

#include "base/loaded_library.hpp"
#include "base/until_fork.hpp"

namespace espalier::crypto {

Result<CryptoFunctions> load_crypto(const char* name) {
  const base::LoadedLibrary library(name);
  CryptoFunctions made;
  const bool whole = library.find("EVP_CIPHER_CTX_new", made.cipher_new) &&
                     library.find("EVP_CIPHER_CTX_free", made.cipher_free) &&
                     library.find("EVP_aes_128_ctr", made.aes_128_ctr) &&
                     library.find("EVP_EncryptInit_ex", made.encrypt_init) &&
                     library.find("EVP_EncryptUpdate", made.encrypt_update) &&
                     library.find("EVP_sha256", made.sha256) && library.find("HMAC", made.hmac);
  if (!whole) return fail(Code::unsupported);
  // Static destructors may still need it. If the process has initialised the library already, this
  // changes nothing.
  int (*set_up)(std::uint64_t options, const void* settings) = nullptr;
  constexpr std::uint64_t kNoCleaningAtExit = 0x80000;  // OPENSSL_INIT_NO_ATEXIT
  if (library.find("OPENSSL_init_crypto", set_up)) set_up(kNoCleaningAtExit, nullptr);
  return made;
}

Result<const CryptoFunctions*> crypto_functions() {
  struct Loaded {
    const Result<CryptoFunctions> functions = load_crypto(kCryptoLibrary);
  };
  static constinit base::PerProcess<Loaded> loaded;
  const Result<CryptoFunctions>& functions = loaded.get().functions;
  if (!functions) return std::unexpected(functions.error());
  return &*functions;
}

}  // namespace espalier::crypto
