// SPDX-License-Identifier: Apache-2.0
// espalier secret new: draws a secret by which a client authenticates to a node.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "crypto/credential.hpp"
#include "crypto/secret_memory.hpp"
#include "memory/shared_memory.hpp"
#include "tools/commands.hpp"

namespace espalier::tools {
namespace {

struct SecretOptions {
  std::string name;
  std::string role;
  std::string names;
  std::string file;
};

Outcome<crypto::Credential> credential_of(const SecretOptions& options) {
  crypto::Credential made;
  if (!crypto::is_credential_name(options.name)) {
    return misused(fmt::format("'{}' cannot be a name", cmdline::escaped(options.name)),
                   "It has 1 to 32 letters, digits, '.', '-' and '_'.");
  }
  made.name = options.name;
  const auto role = crypto::role_of(options.role);
  if (!role) {
    return misused(fmt::format("'{}' is no role", cmdline::escaped(options.role)),
                   "Roles are read, write, admin, peer and replica.");
  }
  made.role = *role;
  if (options.names.empty()) return made;
  const bool blank = options.names.find_first_of(" \t\r\n") != std::string::npos;
  if (options.names.back() != '*' || options.names.size() > crypto::kPrefixBytesMax || blank) {
    return misused(
        fmt::format("'{}' does not say for which names it is", cmdline::escaped(options.names)),
        "Give what they begin with, and a star: --names 'orders/*'.");
  }
  made.prefix = options.names.substr(0, options.names.size() - 1);
  return made;
}

// Refuses an existing file: another user may have created it.
Outcome<void> write_new(const std::string& path, std::string_view text) {
  const memory::Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const auto cannot = [&path](int why) {
    return failed(fmt::format("cannot write {}: {}", cmdline::escaped(path), std::strerror(why)),
                  why == EEXIST ? "It is left as it is; name another by --file." : "");
  };
  if (!file) return cannot(errno);
  while (!text.empty()) {
    const ssize_t written = ::write(file.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot(errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file.number()) != 0) return cannot(errno);
  return {};
}

Outcome<int> make_new(Environment& environment, const SecretOptions& options) {
  const auto credential = credential_of(options);
  if (!credential) return std::unexpected(credential.error());
  const std::string path = options.file.empty() ? credential->name + ".secret" : options.file;
  auto secret = crypto::Secret<crypto::SecretBytes>::make();
  if (!secret) {
    return failed("no memory may be locked for the secret",
                  "RLIMIT_MEMLOCK says how much may be; 'ulimit -l' tells it.");
  }
  if (!crypto::draw_bytes(**secret)) return failed("the system gives no random numbers");
  std::string line;
  line.reserve(512);  // so that no copy stays behind
  crypto::write_credential(*credential, **secret, line);
  line += '\n';
  const auto written = write_new(path, line);
  crypto::cleanse(line.data(), line.size());
  if (!written) return std::unexpected(written.error());
  environment.out << fmt::format(
      "wrote {0}\n"
      "The node: append it to the file that its clients.secrets names, and send it SIGHUP:\n"
      "  cat {0} >> SECRETS\n"
      "The client: --secret-file {0}, or ESPALIER_SECRET_FILE={0}\n",
      cmdline::escaped(path));
  return kOk;
}

}  // namespace

void add_secret_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<SecretOptions>();
  CLI::App& command =
      *app.add_subcommand("secret", "Make secrets by which clients prove who they are");
  command.require_subcommand(1);
  command.footer(
      "Examples:\n"
      "  espalier secret new shop --role write\n"
      "  espalier secret new reports --role read --names 'orders/*' --file reports.secret\n");
  CLI::App& making = *command.add_subcommand("new", "Draw one, into a file for its owner alone");
  making.add_option("NAME", options->name, "Who will come by it")->required();
  making.add_option("--role", options->role, "What he may do: read, write, admin, peer or replica")
      ->required()
      ->type_name("ROLE");
  making
      .add_option("--names", options->names,
                  "For objects of which names only: what they begin with, and a star")
      ->type_name("PREFIX*");
  making.add_option("--file", options->file, "Where to (default: NAME.secret)")->type_name("FILE");
  making.callback([options, &environment, &chosen] {
    chosen =
        reporting(environment, [options, &environment] { return make_new(environment, *options); });
  });
}

}  // namespace espalier::tools
