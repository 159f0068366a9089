#include "comm/watchdog/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "base/error.h"

namespace plumb {

Secret random_secret() {
  Secret secret{};
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    throw Error(ExitCode::internal,
                "the system gives no random numbers for the watchdog; give --no-watchdog");
  return secret;
}

Secret message_code(const Secret& key, std::span<const std::byte> message) {
  Secret code{};
  unsigned length = 0;
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
            reinterpret_cast<const unsigned char*>(message.data()), message.size(),
            reinterpret_cast<unsigned char*>(code.data()), &length) ||
      length != code.size())
    throw Error(ExitCode::internal, "libcrypto makes no HMAC-SHA-256; give --no-watchdog");
  return code;
}

bool same_code(const Secret& a, const Secret& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace plumb
