// SPDX-License-Identifier: Apache-2.0
#include "table/crypto_library.hpp"

#include <dlfcn.h>

namespace espalier::table {
namespace {

template <class F>
bool find(void* library, const char* name, F& into) {
  into = reinterpret_cast<F>(dlsym(library, name));
  return into != nullptr;
}

}  // namespace

Result<CryptoFunctions> load_crypto(const char* name) {
  // It stays: it registers handlers for the end of the program.
  void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return fail(Code::unsupported);
  CryptoFunctions made;
  const bool whole = find(handle, "EVP_CIPHER_CTX_new", made.cipher_new) &&
                     find(handle, "EVP_CIPHER_CTX_free", made.cipher_free) &&
                     find(handle, "EVP_aes_128_ctr", made.aes_128_ctr) &&
                     find(handle, "EVP_EncryptInit_ex", made.encrypt_init) &&
                     find(handle, "EVP_EncryptUpdate", made.encrypt_update) &&
                     find(handle, "EVP_sha256", made.sha256) && find(handle, "HMAC", made.hmac);
  dlclose(handle);  // a count; see above
  if (!whole) return fail(Code::unsupported);
  return made;
}

Result<const CryptoFunctions*> crypto_functions() {
  static const Result<CryptoFunctions> functions = load_crypto(kCryptoLibrary);
  if (!functions) return std::unexpected(functions.error());
  return &*functions;
}

}  // namespace espalier::table
