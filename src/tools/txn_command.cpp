// SPDX-License-Identifier: Apache-2.0
// espalier txn: one transaction over several maps of a node, as lines of text.
//
//   get MAP KEY            only_if_absent MAP KEY         put MAP KEY VALUE
//   erase MAP KEY          only_if_present MAP KEY        only_if_value MAP KEY VALUE
//
// Fields are parted by tabs, with the escapes of TSV; empty lines and those that begin with # are
// left out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "espalier/transaction.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"
#include "tools/split_tsv.hpp"

namespace espalier::tools {
namespace {

// A transaction has 1 MiB at most; escapes take four bytes for one.
constexpr std::size_t kTextBytesMax = std::size_t{8} << 20;

struct TxnOptions {
  std::optional<std::string> at;
  std::string file{kStandardInput};
  std::string client;        // 16 digits; empty: none
  std::uint64_t number = 0;  // of the client's transaction
  bool new_client = false;
  bool json = false;
};

/// A transaction, and where its steps were written.
struct WrittenTransaction {
  Transaction transaction;
  std::vector<std::size_t> lines;  // of the steps
};

Outcome<std::string> read_text(Environment& environment, const std::string& file) {
  std::unique_ptr<ByteSource> opened;
  ByteSource* source = &environment.input;
  if (file != kStandardInput) {
    auto found = environment.files.open(file);
    if (!found) {
      return failed(
          fmt::format("cannot open '{}': {}", cmdline::escaped(file), reason(found.error())));
    }
    opened = std::move(*found);
    source = opened.get();
  }
  std::string text;
  std::array<char, 16384> piece;
  for (;;) {
    const auto got = source->read(piece);
    if (!got) return failed(fmt::format("cannot read the steps: {}", reason(got.error())));
    if (*got == 0) return text;
    text.append(piece.data(), *got);
    if (text.size() > kTextBytesMax) return failed("the steps have more than 8 MiB");
  }
}

/// Adds the step of a line. Returns what is wrong with it; empty: nothing.
std::string add_step(Transaction& to, std::string_view line) {
  std::vector<std::string_view> fields;
  std::string scratch;
  if (auto wrong = split_tsv(line, fields, scratch)) return std::move(*wrong);
  const std::string_view what = fields.front();
  const bool has_value = what == "put" || what == "only_if_value";
  const bool known = has_value || what == "get" || what == "erase" || what == "only_if_absent" ||
                     what == "only_if_present";
  if (!known) return fmt::format("there is no step '{}'", cmdline::escaped(std::string(what)));
  if (fields.size() != (has_value ? 4u : 3u)) {
    return fmt::format("'{}' takes a map, a key{}, parted by tabs", what,
                       has_value ? " and a value" : "");
  }
  const std::string_view map = fields[1];
  const std::string_view key = fields[2];
  if (what == "get") to.get(map, key);
  if (what == "erase") to.erase(map, key);
  if (what == "put") to.put(map, key, fields[3]);
  if (what == "only_if_absent") to.only_if_absent(map, key);
  if (what == "only_if_present") to.only_if_present(map, key);
  if (what == "only_if_value") to.only_if_value(map, key, fields[3]);
  return {};
}

Outcome<WrittenTransaction> parse(std::string_view text) {
  WrittenTransaction written;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    if (const std::string wrong = add_step(written.transaction, line); !wrong.empty()) {
      return misused(fmt::format("line {}: {}", number, wrong),
                     "espalier txn --help shows the steps.");
    }
    written.lines.push_back(number);
  }
  if (written.lines.empty()) return misused("there are no steps", "Give them on standard input.");
  return written;
}

/// The client that a person names by its id, and the number of its transaction; nothing: none is
/// named.
Outcome<std::optional<NumberedClient>> client_of(const TxnOptions& options) {
  if (options.client.empty() != (options.number == 0)) {
    return misused("--client and --number go together",
                   "espalier txn --new-client prints the id of a client.");
  }
  if (options.client.empty()) return std::nullopt;
  NumberedClient client{0, options.number};
  const char* const end = options.client.data() + options.client.size();
  const auto [at, wrong] = std::from_chars(options.client.data(), end, client.id, 16);
  if (wrong != std::errc() || at != end || client.id == 0) {
    return misused(fmt::format("'{}' is no client's id", cmdline::escaped(options.client)),
                   "espalier txn --new-client prints one.");
  }
  return client;
}

Outcome<int> make_client(Environment& environment, const TxnOptions& options) {
  auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  auto store = connect(environment, *address);
  if (!store) return std::unexpected(store.error());
  const auto made = store->make_numbered_client();
  if (!made) return call_failed("make a client", made.error());
  const std::string id = fmt::format("{:016x}", made->id);
  if (options.json) {
    environment.out << nlohmann::ordered_json{{"client", id}}.dump() << '\n';
  } else {
    environment.out << id << '\n';
  }
  return kOk;
}

std::unexpected<Failure> fail_transaction(const WrittenTransaction& written,
                                          const std::string& address, const Error& error) {
  const auto& maps = written.transaction.maps();
  const std::string map =
      error.detail < maps.size() ? cmdline::escaped(maps[error.detail]) : std::string();
  if (error.code == Code::condition_failed && error.detail < written.lines.size()) {
    return failed(fmt::format("the condition of line {} does not hold, and nothing was done",
                              written.lines[error.detail]));
  }
  if (error.code == Code::not_found) {
    return failed(fmt::format("the node at {} has no map '{}'", address, map),
                  "espalier list shows what it has.");
  }
  if (error.code == Code::outdated) {
    return failed(error.detail == 1
                      ? "the node does not know this client (any more), and did nothing"
                      : "the client has acknowledged this number, and nothing was done now");
  }
  if (error.code == Code::already_exists) {
    return failed("this number is that of another transaction of the client, so nothing was done");
  }
  if (error.code == Code::unsupported) {
    return failed(
        fmt::format("'{}' cannot take part: transactions take ordered maps and hash maps that keep "
                    "versions, and several of them only where they are of one group",
                    map),
        "Make the maps with --in-group, or start the node with --node-shared-clock.");
  }
  return call_failed("do the transaction", error);
}

void print_json(std::ostream& out, const WrittenTransaction& written, const Transacted& done) {
  nlohmann::ordered_json object;
  object["version"] = done.version;
  object["found"] = nlohmann::ordered_json::array();
  std::size_t next = 0;
  for (const Transaction::Step& step : written.transaction.steps()) {
    if (step.kind != Transaction::StepKind::get) continue;
    const std::optional<Found>& found = done.found[next++];
    nlohmann::ordered_json one;
    set_bytes(one, "map", written.transaction.maps()[step.map]);
    set_bytes(one, "key", step.key);
    one["found"] = found.has_value();
    if (found) {
      set_bytes(one, "value", found->value);
      one["version"] = found->version;
    }
    object["found"].push_back(std::move(one));
  }
  out << object.dump() << '\n';
}

// A key that is not there has no third field.
void print_text(std::ostream& out, const WrittenTransaction& written, const Transacted& done) {
  std::size_t next = 0;
  for (const Transaction::Step& step : written.transaction.steps()) {
    if (step.kind != Transaction::StepKind::get) continue;
    const std::optional<Found>& found = done.found[next++];
    std::string line = encode(written.transaction.maps()[step.map], Encoding::tsv);
    line += '\t' + encode(step.key, Encoding::tsv);
    if (found) line += '\t' + encode(found->value, Encoding::tsv);
    out << line << '\n';
  }
}

Outcome<int> run_txn(Environment& environment, const TxnOptions& options) {
  if (options.new_client) return make_client(environment, options);
  auto client = client_of(options);
  if (!client) return std::unexpected(client.error());
  auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  const auto text = read_text(environment, options.file);
  if (!text) return std::unexpected(text.error());
  const auto written = parse(*text);
  if (!written) return std::unexpected(written.error());
  auto store = connect(environment, *address);
  if (!store) return std::unexpected(store.error());
  const auto done = *client ? store->transact(written->transaction, **client)
                            : store->transact(written->transaction);
  if (!done) return fail_transaction(*written, *address, done.error());
  if (!done->found_is_known) {
    return failed("it was done before, but what it had read is not known any more");
  }
  if (options.json) {
    print_json(environment.out, *written, *done);
  } else {
    print_text(environment.out, *written, *done);
  }
  return kOk;
}

}  // namespace

void add_txn_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<TxnOptions>();
  CLI::App& command =
      *app.add_subcommand("txn", "Do one transaction over several maps of a node, all or nothing");
  command.add_option("--at", options->at, "The node's address, or ESPALIER_AT")
      ->option_text("ADDRESS");
  command.add_option("--file", options->file, "Where the steps are (-, standard input)")
      ->option_text("FILE");
  command.add_option("--client", options->client, "A client's id: its transactions have numbers")
      ->option_text("ID");
  command
      .add_option("--number", options->number,
                  "Of the client's transaction: one that was done is not done again")
      ->option_text("NUMBER")
      ->check(CLI::PositiveNumber);
  command.add_flag("--new-client", options->new_client, "Print the id of a new client instead")
      ->excludes("--client")
      ->excludes("--file");
  add_json_option(command, options->json);
  command.footer(
      "A step is a line of fields with tabs between:\n"
      "  get MAP KEY, put MAP KEY VALUE, erase MAP KEY,\n"
      "  only_if_absent MAP KEY, only_if_present MAP KEY, only_if_value MAP KEY VALUE\n"
      "What was read is printed as lines of map, key and value, without a value where there is\n"
      "none. Exits with 1 if a condition does not hold; then nothing was done.\n"
      "With --client and --number it may be asked for again, after whatever has failed: what was\n"
      "done under that number is not done again, and what it printed is printed again.\n"
      "Examples:\n"
      "  printf 'get\\taccounts\\tann\\n' | espalier txn --at unix:/run/espalier/espalier.sock\n"
      "  espalier txn --at unix:/run/espalier/espalier.sock --file pay.tsv\n"
      "  id=$(espalier txn --at unix:/run/espalier/espalier.sock --new-client)\n"
      "  espalier txn --at unix:/run/espalier/espalier.sock --client $id --number 1 --file "
      "pay.tsv\n");
  command.callback([options, &environment, &chosen] {
    chosen =
        reporting(environment, [options, &environment] { return run_txn(environment, *options); });
  });
}

}  // namespace espalier::tools
