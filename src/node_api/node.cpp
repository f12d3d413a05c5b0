// SPDX-License-Identifier: Apache-2.0
#include "espalier/node.hpp"

#include <unistd.h>

#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "base/machine_memory.hpp"
#include "base/private_folder.hpp"
#include "device/device.hpp"
#include "kinds/program/own_calls.hpp"
#include "node/config_load.hpp"
#include "node/config_settings.hpp"
#include "node/node.hpp"
#include "node_api/program_kinds.hpp"

namespace espalier {
namespace {

/// Where problems of NodeSettings::toml say that they are.
constexpr std::string_view kTomlName = "NodeSettings::toml";

TableError wrong(std::string words) { return {{Code::invalid_argument, 0, 0}, std::move(words)}; }

TableResult<node::Config> config_of(const NodeSettings& settings) {
  node::World world;
  world.read_file = [&settings](const std::string& path) -> Result<std::string> {
    if (path != kTomlName) return fail(Code::not_found);
    return settings.toml;
  };
  world.user_id = ::geteuid();
  world.memory_bytes = base::usable_memory_bytes();
  std::vector<node::FlagValue> flags{{std::string(node::kFileKey), std::string(kTomlName)}};
  for (const auto& [key, text] : settings.values) {
    if (key == node::kFileKey) {
      return std::unexpected(wrong("config is no setting of a node in a program: use toml"));
    }
    flags.push_back({key, text});
  }
  auto loaded = node::load(world, flags);
  if (loaded) return std::move(loaded->config);
  std::string words;
  for (const node::Problem& problem : loaded.error()) {
    if (!words.empty()) words += "\n";
    words += node::describe(problem);
  }
  return std::unexpected(wrong(std::move(words)));
}

/// A folder that only this user has is made where the default is a socket in it.
Result<void> make_socket_folder(const std::string& socket) {
  const std::string folder = std::filesystem::path(socket).parent_path().string();
  if (folder != node::own_folder(::geteuid())) return {};
  return base::make_private_folder(folder);
}

}  // namespace

/// What goes last is what others use.
struct Node::Running {
  explicit Running(std::shared_ptr<const program::OwnCalls> own) : kinds(std::move(own)) {}

  node_api::ProgramKinds kinds;
  // Why it does not start; a device writes there also when it begins anew.
  std::string failed_address;
  std::string peer_mistake;
  std::string data_mistake;
  std::vector<std::string> secret_mistakes;
  std::unique_ptr<node::Node> node;
  std::unique_ptr<device::Device> device;

  TableResult<void> start(const node::Config& config, const NodeSettings& settings);
  /// Calls `use` with the node; with none while a device has none.
  template <class Use>
  auto with_node(const Use& use) const {
    return device != nullptr ? device->with_node(use) : use(node.get());
  }
};

TableResult<void> Node::Running::start(const node::Config& config, const NodeSettings& settings) {
  node::NodeOptions options;
  options.own_kinds = kinds.kinds();
  options.failed_address = &failed_address;
  options.secret_mistakes = &secret_mistakes;
  options.peer_mistake = &peer_mistake;
  options.data_mistake = &data_mistake;
  options.data_failed = settings.data_failed;
  const auto refusal = [&](const Error& error) {
    std::string words = !data_mistake.empty() ? data_mistake : peer_mistake;
    if (!failed_address.empty()) words = "it cannot listen at " + failed_address;
    for (const std::string& each : secret_mistakes) words += (words.empty() ? "" : "\n") + each;
    return std::unexpected(TableError(error, std::move(words)));
  };
  if (config.node.place == node::Place::host) {
    auto started = node::Node::start(config, options);
    if (!started) return refusal(started.error());
    node = std::move(*started);
    return {};
  }
  const auto host = device::host_options(config);
  if (!host) return refusal(host.error());
  auto started =
      device::Device::start(config, {.host = *host, .node = options, .begun_anew = [] {}});
  if (!started) return refusal(started.error());
  device = std::move(*started);
  return {};
}

Node::Node(std::unique_ptr<Running> running) : running_(std::move(running)) {}
Node::Node(Node&&) noexcept = default;
Node& Node::operator=(Node&&) noexcept = default;
Node::~Node() = default;

TableResult<Node> Node::start(const NodeSettings& settings, Offloads offloads) {
  try {
    return begin(settings, std::move(offloads));
  } catch (const std::bad_alloc&) {
    return std::unexpected(TableError({Code::out_of_memory, 0, 0}, {}));
  } catch (const std::system_error& error) {  // no thread is to be had
    const auto number = static_cast<std::uint32_t>(error.code().value());
    return std::unexpected(TableError({Code::system, 0, number}, error.what()));
  }
}

TableResult<Node> Node::begin(const NodeSettings& settings, Offloads offloads) {
  if (std::string mistake = offloads.mistake(); !mistake.empty()) {
    return std::unexpected(wrong(std::move(mistake)));
  }
  const auto config = config_of(settings);
  if (!config) return std::unexpected(config.error());
  if (const auto made = make_socket_folder(config->node.socket); !made) {
    return std::unexpected(TableError(made.error(), "the folder of node.socket"));
  }
  const std::uint64_t limit =
      config->memory.limit != 0 ? config->memory.limit : base::default_store_bytes();
  auto running = std::make_unique<Running>(
      std::make_shared<const program::OwnCalls>(std::move(offloads), limit));
  if (auto started = running->start(*config, settings); !started) {
    return std::unexpected(std::move(started.error()));
  }
  Node node(std::move(running));
  node.address_ = "unix:" + config->node.socket;
  return node;
}

const std::string& Node::address() const { return address_; }

std::vector<std::string> Node::fabric_addresses() const {
  if (running_ == nullptr) return {};
  return running_->with_node([](const node::Node* node) {
    return node != nullptr ? node->fabric_addresses() : std::vector<std::string>();
  });
}

std::uint32_t Node::connections() const {
  if (running_ == nullptr) return 0;
  return running_->with_node(
      [](const node::Node* node) { return node != nullptr ? node->connections() : 0; });
}

void Node::stop() { running_.reset(); }

}  // namespace espalier
