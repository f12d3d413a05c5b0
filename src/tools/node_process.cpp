// SPDX-License-Identifier: Apache-2.0
#include "tools/node_process.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/byte_size.hpp"
#include "base/clock.hpp"
#include "base/private_folder.hpp"
#include "device/device.hpp"
#include "fabric/address.hpp"
#include "node/config_change.hpp"
#include "node/config_load.hpp"
#include "node/config_value.hpp"
#include "node/node.hpp"
#include "tools/audit_line.hpp"
#include "tools/fabric_link.hpp"
#include "tools/hourly.hpp"
#include "tools/notify.hpp"
#include "tools/numbers.hpp"
#include "tools/progress.hpp"
#include "tools/stop_signals.hpp"

namespace espalier::tools {
namespace {

namespace fs = std::filesystem;

spdlog::level::level_enum spdlog_level(node::LogLevel level) {
  switch (level) {
    case node::LogLevel::trace: return spdlog::level::trace;
    case node::LogLevel::debug: return spdlog::level::debug;
    case node::LogLevel::info: return spdlog::level::info;
    case node::LogLevel::warn: return spdlog::level::warn;
    case node::LogLevel::error: return spdlog::level::err;
  }
  std::unreachable();
}

/// A log on `err`. A journal, which says so by a variable, has the time already.
spdlog::logger open_log(Environment& environment, node::LogLevel level) {
  constexpr bool kFlush = true;
  spdlog::logger log("node",
                     std::make_shared<spdlog::sinks::ostream_sink_mt>(environment.err, kFlush));
  const bool journal = variable(environment, "JOURNAL_STREAM").has_value();
  log.set_pattern(journal ? "%l: %v" : "%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
  log.set_level(spdlog_level(level));
  return log;
}

/// Notifies systemd, if it started the node.
void notify_starter(Environment& environment, spdlog::logger& log, std::string_view state) {
  const auto path = variable(environment, "NOTIFY_SOCKET");
  if (!path) return;
  if (const auto sent = notify(*path, state); !sent) {
    log.warn("cannot tell {} to NOTIFY_SOCKET: {}", state, reason(sent.error()));
  }
}

void log_maps(spdlog::logger& log, const node::Config& config, const node::Node& node) {
  for (const node::MapConfig& map : config.maps) {
    log.info("map '{}': nodes of {}, logs of {}, {}", map.name,
             base::exact_bytes(map.options.node_bytes), base::exact_bytes(map.options.log_bytes),
             map.options.versions ? "versions" : "no versions");
  }
  log.info("memory: at most {}; {}", format_bytes(config.memory.limit), node.page_message());
}

/// Which clients may connect to a fabric address.
void log_address(spdlog::logger& log, const node::Config& config, const std::string& address) {
  const auto parsed = fabric::parse(address);
  const fabric::Reach reach = parsed ? fabric::reach_of(*parsed) : fabric::Reach::network;
  if (reach == fabric::Reach::user) {
    log.info("listening at {}: this user may do all", address);
  } else if (!config.clients.secrets.empty()) {
    log.info("listening at {}: for those of {}", address, config.clients.secrets);
  } else {
    log.log(reach == fabric::Reach::network ? spdlog::level::warn : spdlog::level::info,
            "listening at {}: whoever reaches it may do all, and proves nothing", address);
  }
}

/// Whether the node serves a network without authentication.
bool is_open_to_a_network(const node::Config& config) {
  if (!config.clients.open || !config.clients.secrets.empty()) return false;
  return std::ranges::any_of(node::fabric_addresses(config.node.fabric), [](std::string_view each) {
    const auto parsed = fabric::parse(each);
    return parsed && fabric::reach_of(*parsed) == fabric::Reach::network;
  });
}

void warn_of_open_network(spdlog::logger& log, const node::Config& config) {
  log.warn("clients.open is set: whoever reaches {} may do all, and proves nothing",
           config.node.fabric);
}

void audit(spdlog::logger& log, const offload::AuditRecord& record) {
  log.log(record.refusal ? spdlog::level::warn : spdlog::level::info, "{}", audit_line(record));
}

/// Audits a signal, by the user of this machine who sent it.
void audit_signal(spdlog::logger& log, std::string_view act, const std::string& sender,
                  std::string_view object, const Error& outcome) {
  offload::AuditRecord record;
  record.act = act;
  record.name = "SIGHUP";
  record.role = offload::Right::admin;
  record.address = sender;
  record.object = object;
  record.outcome = outcome;
  audit(log, record);
}

/// What the data folder had.
void log_data(spdlog::logger& log, const node::Config& config, const node::DataFolder& data) {
  const double seconds = static_cast<double>(data.applied_ns()) / 1e9;
  const auto per_s = [&](std::uint64_t count) {
    return static_cast<std::uint64_t>(static_cast<double>(count) / std::max(seconds, 1e-9));
  };
  log.info("data folder '{}': {} records in {:.1f} s, {}/s, {}/s", config.data.dir,
           data.applied_records(), seconds, format_count(per_s(data.applied_records())),
           format_bytes(per_s(data.applied_bytes())));
  for (const log::LogError& damaged : data.recovered().damaged_checkpoints) {
    log.warn("a checkpoint is left out: {}", log::message(damaged));
  }
  if (const auto& from = data.recovered().checkpoint) {
    log.info("checkpoint {} with {} records, then the log from sequence {} on", from->number,
             from->records, from->sequence);
  }
  const auto& cut = data.recovered().cut;
  if (cut && cut->accepted) {
    log.warn(
        "--accept-loss-from {}: all that was acknowledged from sequence {} on is lost: file {}, "
        "offset {}; start it without the option from now on",
        config.data.accept_loss_from.value_or(cut->sequence), cut->sequence, cut->file,
        cut->offset);
    for (const std::string& file : data.recovered().lost) {
      log.warn("{} was given up, and lies there by another name", file);
    }
  } else if (cut) {
    log.warn("the log ends at sequence {}: {} has what was never acknowledged from offset {} on",
             cut->sequence, cut->file, cut->offset);
  }
}

void log_start(spdlog::logger& log, const node::Loaded& loaded, const node::Node& node) {
  const node::Config& config = loaded.config;
  log.debug("configuration:\n{}", node::print(loaded));
  if (config.node.place == node::Place::device) {
    log.info("a device before the maps of {}", config.node.host);
  } else {
    log_maps(log, config, node);
  }
  if (node.data() != nullptr) log_data(log, config, *node.data());
  if (config.metrics.port != 0) {
    log.info("metrics at http://127.0.0.1:{}/metrics", config.metrics.port);
  }
  log.info("listening at unix:{}, permissions {:04o}, with {} worker{}", config.node.socket,
           config.node.socket_mode, config.node.cores, config.node.cores == 1 ? "" : "s");
  for (const std::string& address : node.fabric_addresses()) {
    log_address(log, config, address);
  }
  if (node.datagrams() != nullptr) {
    log.info("datagrams at {}", fabric::roce::to_text(node.datagrams()->address()));
  }
}

using NotChanged = std::vector<node::Node::NotChanged>;

/// What differed from the configuration that the node ran with, and what became of that.
void log_changes(spdlog::logger& log, const node::ConfigChanges& changes,
                 const NotChanged& not_changed) {
  for (const node::SettingChange& change : changes.settings) {
    const auto failed = std::ranges::find(not_changed, change.key, &node::Node::NotChanged::key);
    if (failed != not_changed.end()) continue;
    if (change.live) {
      log.info("{} was {} and is {} from now on", change.key, change.before, change.after);
    } else {
      log.warn("{} stays {}: to make it {} takes a restart", change.key, change.before,
               change.after);
    }
  }
  for (const node::MapChange& map : changes.maps) {
    switch (map.kind) {
      case node::MapChange::Kind::added:
        log.warn("map '{}' is not made: espalier map create makes it now, a restart too", map.name);
        break;
      case node::MapChange::Kind::removed:
        log.warn("map '{}' stays: espalier map drop removes it now, a restart too", map.name);
        break;
      case node::MapChange::Kind::other_options:
        log.warn("map '{}' stays as it is: other options take a restart", map.name);
        break;
    }
  }
}

void log_not_changed(spdlog::logger& log, const node::Config& wanted,
                     const node::Node::NotChanged& failed) {
  if (failed.key == "metrics.port") {
    log.error("metrics.port stays as it was: {}", start_failure(wanted, failed.error).what);
  } else if (!failed.words.empty()) {
    for (const std::string& words : failed.words) log.error("{}", words);
    log.error("{} stays as it was", failed.key);
  } else if (failed.error.code == Code::not_found) {
    log.error("{} stays as it was: the socket's file is not there any more", failed.key);
  } else {
    log.error("{} stays as it was: {}", failed.key, reason(failed.error));
  }
}

/// What became of the secrets, which are read again with each SIGHUP.
void audit_secrets(spdlog::logger& log, const node::Node& node, const NotChanged& not_changed,
                   const std::string& sender) {
  const std::string& file = node.config().clients.secrets;
  if (file.empty()) return;
  const auto failed =
      std::ranges::find(not_changed, "clients.secrets", &node::Node::NotChanged::key);
  audit_signal(log, "reload_secrets", sender, file,
               failed == not_changed.end() ? Error{} : failed->error);
}

/// Reloads the secrets even if the configuration is wrong, so that removed names lose access.
void reload_secrets(spdlog::logger& log, node::Node& node, const std::string& sender) {
  const node::Config same = node.config();
  const NotChanged not_changed = node.change(same);
  audit_secrets(log, node, not_changed, sender);
  for (const auto& failed : not_changed) log_not_changed(log, same, failed);
}

/// Takes what a running node can take of the configuration as it is by now. What is logged of that
/// goes by the more talkative of the old and the new level.
void reload(spdlog::logger& log, node::Node& node, const LoadAgain& load_again,
            const std::string& sender) {
  const auto loaded = load_again();
  const Error wrong{Code::invalid_argument, 0, 0};
  if (!loaded) {
    audit_signal(log, "reload_configuration", sender, {}, wrong);
    for (const node::Problem& problem : loaded.error()) log.error(node::describe(problem));
    log.error("SIGHUP: the configuration is wrong; all settings stay as they were");
    return reload_secrets(log, node, sender);
  }
  node::Config wanted = loaded->config;
  if (wanted.node.place == node::Place::device) {  // what it has none of
    wanted.maps = node.config().maps;
    wanted.memory.limit = node.config().memory.limit;
  }
  const node::ConfigChanges changes = node::changes(node.config(), wanted);
  const spdlog::level::level_enum level = spdlog_level(wanted.log.level);
  log.set_level(std::min(log.level(), level));
  log.info("SIGHUP: the configuration is read again; {}",
           changes.settings.empty() && changes.maps.empty() ? "nothing differs" : "it differs");
  const NotChanged not_changed = node.change(wanted);
  audit_signal(log, "reload_configuration", sender, {}, {});
  audit_secrets(log, node, not_changed, sender);
  log_changes(log, changes, not_changed);
  for (const auto& failed : not_changed) log_not_changed(log, wanted, failed);
  log.set_level(level);
}

/// How far a start has come that has much to read: a line that is written over on a terminal,
/// elsewhere one of the log every ten seconds.
class RecoveryLine {
 public:
  RecoveryLine(Environment& environment, spdlog::logger& log)
      : environment_(environment), log_(log) {}

  void report(const node::RecoveryProgress& now) {
    const std::uint64_t now_ns = environment_.now_ns();
    if (!line_) {
      line_.emplace(environment_, "reading data", now.bytes_max);
      next_ns_ = now_ns + kEveryNs;
    }
    line_->update_piece(now.bytes, now.records);
    if (environment_.err_is_terminal || now_ns < next_ns_) return;
    next_ns_ = now_ns + kEveryNs;
    log_.info("reading data: {} records, {} of about {}", now.records, format_bytes(now.bytes),
              format_bytes(now.bytes_max));
  }

 private:
  static constexpr std::uint64_t kEveryNs = 10'000'000'000;

  Environment& environment_;
  spdlog::logger& log_;
  std::optional<Progress> line_;  // once there is something to read
  std::uint64_t next_ns_ = 0;
};

/// What runs in this process: a node, or a device, whose engine may be just about to begin anew.
class Served {
 public:
  /// Why it does not start, as NodeOptions has it.
  struct Failures {
    std::string address;
    std::vector<std::string> secrets;
    std::string peer;
    std::string data;
    /// Later: why nothing is acknowledged any more, where the node is to end then.
    std::string log;
    std::atomic<bool> stopping = false;  ///< it ends anyway
    std::string signal;                  ///< that came while it waited for its turn
  };
  Result<void> start(const node::Config& config, Failures& failures, StopSignals& signals,
                     spdlog::logger& log, Environment& environment) {
    node::NodeOptions options;
    options.failed_address = &failures.address;
    options.secret_mistakes = &failures.secrets;
    options.peer_mistake = &failures.peer;
    options.data_mistake = &failures.data;
    const bool exits = config.data.on_log_error == node::OnLogError::exit;
    options.data_failed = [&log, &failures, exits](const std::string& why) {
      log.error("nothing is acknowledged any more, and {}: {}",
                exits ? "the node ends" : "what is there is still read", why);
      if (!exits) return;
      failures.log = why;
      if (!failures.stopping) StopSignals::stop_this_process();
    };
    options.checkpoint_failed = [&log](const std::string& why) {
      log.warn("a checkpoint was not finished, and the log keeps what it has: {}", why);
    };
    options.stopped = [&] {
      const std::string signal = signals.wait(0);
      if (signal.empty() || signal == "SIGHUP") return false;
      failures.signal = signal;
      return true;
    };
    options.chain_report = [&log](const std::string& line) { log.warn("{}", line); };
    options.chain_ended = [this, &log](const std::string& why) {
      log.error("this member of the chain takes no part any more: {}", why);
      left_chain_.store(true);
      StopSignals::stop_this_process();
    };
    options.audit = [&log](const offload::AuditRecord& record) { audit(log, record); };
    if (config.node.place == node::Place::host) {
      RecoveryLine recovery(environment, log);
      options.recovering = [&recovery](const node::RecoveryProgress& now) { recovery.report(now); };
      auto node = node::Node::start(config, options);
      if (!node) return std::unexpected(node.error());
      node_ = std::move(*node);
      return {};
    }
    const auto host = device::host_options(config);
    if (!host) return std::unexpected(host.error());
    const auto begun_anew = [&log, host = config.node.host] {
      log.warn("at {} is another node now: clients were told, and its maps are served", host);
    };
    auto device =
        device::Device::start(config, {.host = *host, .node = options, .begun_anew = begun_anew});
    if (!device) return std::unexpected(device.error());
    device_ = std::move(*device);
    return {};
  }
  /// Calls `use` with the node; with none while there is none.
  template <class Use>
  auto with_node(const Use& use) {
    return device_ ? device_->with_node(use) : use(node_.get());
  }
  /// Whether it ends because its chain goes on without it.
  [[nodiscard]] bool left_chain() const { return left_chain_.load(); }
  void stop() {
    node_.reset();
    device_.reset();
  }

 private:
  std::unique_ptr<node::Node> node_;
  std::unique_ptr<device::Device> device_;
  std::atomic<bool> left_chain_{false};
};

/// Waits for the signal that stops the node, and handles the others; warns each hour of open
/// access. Returns the signal's name.
std::string run_until_stopped(Environment& environment, spdlog::logger& log, Served& served,
                              StopSignals& signals, const node::Config& config,
                              const LoadAgain& load_again) {
  const bool warns = is_open_to_a_network(config);
  Hourly warning(environment.now_ns());
  for (;;) {
    std::string signal =
        signals.wait(warns ? std::optional(warning.left_ns(environment.now_ns())) : std::nullopt);
    if (warns && warning.take(environment.now_ns())) warn_of_open_network(log, config);
    if (signal.empty()) continue;
    if (signal != "SIGHUP") return signal;
    notify_starter(environment, log,
                   fmt::format("RELOADING=1\nMONOTONIC_USEC={}", base::monotonic_ns() / 1000));
    served.with_node([&](node::Node* node) {
      if (node != nullptr) return reload(log, *node, load_again, signals.sender());
      log.error("SIGHUP: the host is being sought; all settings stay as they were");
    });
    notify_starter(environment, log, "READY=1");
  }
}

/// Why the host of a device cannot be read, and what to do about it.
Failure host_failure(const std::string& host, const Error& error) {
  constexpr std::string_view kStart =
      "Start one: espalier serve --node-fabric {} --node-one-sided true";
  if (error.code == Code::unsupported) {
    return {kFailed, fmt::format("the node at {} does not offer its memory to be read", host),
            "Start it with --node-one-sided true; ofi: addresses have no one-sided access."};
  }
  if (error.code == Code::system && (error.detail == ENOENT || error.detail == ECONNREFUSED)) {
    return {kFailed, fmt::format("no node listens at {}", host), fmt::format(kStart, host)};
  }
  return {kFailed, fmt::format("cannot reach the host at {}: {}", host, reason(error)), ""};
}

/// Whether the host of a device is there and can be read.
Outcome<void> check_host(const node::Config& config) {
  if (config.node.place == node::Place::host) return {};
  const auto options = device::host_options(config);
  if (options) {
    if (const auto secret = device::secret_of(*options); !secret) {
      return failed(secret.error().words, "--secret-file or ESPALIER_SECRET_FILE names it.");
    }
  }
  const auto found = options ? device::find_host(*options) : std::unexpected(options.error());
  if (found) return {};
  return std::unexpected(host_failure(config.node.host, found.error()));
}

}  // namespace

Outcome<void> check_socket_folder(const node::Config& config) {
  fs::path folder = fs::path(config.node.socket).parent_path();
  if (folder.empty()) folder = ".";
  if (folder == node::own_folder(::geteuid())) {
    const auto made = base::make_private_folder(folder);
    if (made) return {};
    return failed(
        made.error().code == Code::not_permitted
            ? fmt::format("'{}' is no folder of this user's alone (mode 0700)", folder.string())
            : fmt::format("cannot make the folder '{}' of the socket: {}", folder.string(),
                          reason(made.error())),
        "Take it away, or give another path: --node-socket PATH.");
  }
  std::error_code error;
  if (fs::is_directory(folder, error)) return {};
  const bool missing = !error || error == std::errc::no_such_file_or_directory ||
                       error == std::errc::not_a_directory;
  if (!missing) {
    return failed(fmt::format("cannot look at the folder '{}' of the socket: {}", folder.string(),
                              error.message()),
                  "Give another path: --node-socket PATH.");
  }
  return failed(fmt::format("the folder '{}' of the socket does not exist", folder.string()),
                "Make it, or give another path: --node-socket PATH.");
}

Failure start_failure(const node::Config& config, const Error& error) {
  const std::string& socket = config.node.socket;
  // Only the metrics' listener reports a port.
  const bool of_port = config.metrics.port != 0 && error.detail == config.metrics.port;
  if (of_port && error.code == Code::already_exists) {
    return {kFailed, fmt::format("port {} for metrics is taken", error.detail),
            "Give another one, or 0 for none: --metrics-port PORT."};
  }
  if (of_port && error.code == Code::invalid_argument) {
    return {kFailed, fmt::format("this user may not listen at port {} for metrics", error.detail),
            "Give one above 1023: --metrics-port PORT."};
  }
  if (error.code == Code::already_exists) {
    return {kFailed, fmt::format("a node listens at {} already", socket),
            "Stop it, or give another path: --node-socket PATH."};
  }
  if (error.code == Code::unsupported && !config.node.datagrams.empty()) {
    return {kFailed, fmt::format("datagrams at {} need libcrypto", config.node.datagrams),
            "Install OpenSSL's library, libssl3 or newer, or leave out node.datagrams."};
  }
  if (error.code == Code::out_of_memory) {
    return {kFailed,
            fmt::format("memory.limit, {}, is too little for {} map{}",
                        base::exact_bytes(config.memory.limit), config.maps.size(),
                        config.maps.size() == 1 ? "" : "s"),
            "Give more: --memory-limit SIZE."};
  }
  if (error == Error{Code::system, 0, EADDRINUSE}) {
    return {kFailed, fmt::format("'{}' exists and is no socket of a node", socket),
            "Take it away, or give another path: --node-socket PATH."};
  }
  if (error == Error{Code::system, 0, EACCES} || error == Error{Code::system, 0, EROFS}) {
    return {kFailed, fmt::format("cannot make the socket '{}': {}", socket, reason(error)),
            "Give a path where this user may write: --node-socket PATH."};
  }
  if (error == Error{Code::system, 0, ENOMEM}) {
    return {kFailed, fmt::format("cannot reserve memory for maps: {}", reason(error)),
            "A smaller limit may help: --memory-limit SIZE."};
  }
  return {kFailed, fmt::format("the node cannot start: {}", reason(error)), ""};
}

Outcome<int> run_node(Environment& environment, const node::Loaded& loaded,
                      const LoadAgain& load_again) {
  if (auto checked = check_socket_folder(loaded.config); !checked) {
    return std::unexpected(checked.error());
  }
  StopSignals signals(StopSignals::Hangup::waited_for);
  if (auto checked = check_host(loaded.config); !checked) {
    return std::unexpected(checked.error());
  }
  Served::Failures failures;
  spdlog::logger log = open_log(environment, loaded.config.log.level);
  Served served;
  const node::Config::Chain& chain = loaded.config.chain;
  if (!chain.name.empty()) {
    log.info("member '{}' of the chain at {}: clients are served once it is the head", chain.name,
             chain.members);
    notify_starter(environment, log, "READY=1");
  }
  const auto started = served.start(loaded.config, failures, signals, log, environment);
  if (!started && !failures.signal.empty()) {
    log.info("{}: stopped", failures.signal);
    return kOk;
  }
  if (!started && !failures.address.empty()) {
    return std::unexpected(cannot_listen(failures.address, started.error()));
  }
  if (!started && !failures.secrets.empty()) {
    std::string words = "clients.secrets cannot be used:";
    for (const std::string& each : failures.secrets) words += "\n  " + each;
    return std::unexpected(Failure{kFailed, words, "'espalier secret new' writes such lines."});
  }
  if (!started && !failures.peer.empty()) {
    return std::unexpected(Failure{kFailed, failures.peer, "Name a file of one line, its own."});
  }
  if (!started && !failures.data.empty()) {
    return std::unexpected(Failure{kFailed, failures.data, ""});
  }
  if (!started) return std::unexpected(start_failure(loaded.config, started.error()));
  served.with_node([&](node::Node* node) {
    if (node != nullptr) log_start(log, loaded, *node);
  });
  notify_starter(environment, log, "READY=1");

  const std::string signal =
      run_until_stopped(environment, log, served, signals, loaded.config, load_again);
  const std::uint32_t clients = served.with_node(
      [](const node::Node* node) { return node != nullptr ? node->connections() : 0; });
  log.info("{}: stopping; {} client{} told", signal, clients, clients == 1 ? " is" : "s are");
  notify_starter(environment, log, "STOPPING=1");
  failures.stopping = true;
  served.stop();
  log.info("stopped");
  if (!failures.log.empty()) {
    return failed(fmt::format("the log failed: {}", failures.log),
                  "What was acknowledged is in the data folder. Start the node again once the disk "
                  "is well.");
  }
  if (served.left_chain()) {
    return failed("the chain goes on without this member", "espalier chain status shows it.");
  }
  return kOk;
}

}  // namespace espalier::tools
