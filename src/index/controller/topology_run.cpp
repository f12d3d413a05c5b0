// SPDX-License-Identifier: Apache-2.0
#include "index/controller/topology_run.hpp"

#include <chrono>
#include <future>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "dataplane/control_client.hpp"
#include "dataplane/switch_control.hpp"
#include "dataplane/switch_program.hpp"
#include "index/controller/index_link.hpp"

namespace espalier::client {
namespace {

constexpr std::chrono::milliseconds kTopologyLook(50);
/// A switch is asked so often while something takes long, for it is not to forget the map.
constexpr std::uint64_t kTopologyAskNs = dataplane::kHolderSilentNs / 6;
/// What takes a switch no time is waited for so long, and beside something else so long.
constexpr std::uint64_t kTopologyShortNs = 1'000'000'000;
constexpr std::uint64_t kTopologyBesideNs = 200'000'000;
/// So long nothing is asked of a switch that has not answered, and of one that has refused tables.
constexpr std::uint64_t kTopologySlowRestsNs = 3'000'000'000;
constexpr std::uint64_t kTopologyRefusedRestsNs = 500'000'000;
// Between tries to open a node that is missing: from the first to the second, doubled each time.
constexpr std::uint64_t kTopologyOpenRestsMinNs = 100'000'000;
constexpr std::uint64_t kTopologyOpenRestsMaxNs = 1'000'000'000;

}  // namespace

/// A node, by a link that has a lease there.
class TopologyRun::Node final : public place::TopologyNode {
 public:
  static Result<std::unique_ptr<Node>> open(const Options& options, std::size_t number) {
    auto link = IndexLink::open(options.nodes[number], options.map, options.connecting);
    if (!link) return std::unexpected(link.error());
    return std::unique_ptr<Node>(new Node(std::move(*link), options, number));
  }

  [[nodiscard]] dataplane::MapKeys keys() const override {
    dataplane::MapKeys keys = link_->keys();
    keys.node = number_;
    return keys;
  }
  [[nodiscard]] dataplane::HintTerms hints() const override {
    return {link_->view().id, link_->base(), link_->prefix()};
  }
  [[nodiscard]] const tree::MapView& view() const override { return link_->view(); }
  [[nodiscard]] place::RegionSource& source() override { return *link_; }
  [[nodiscard]] Result<std::optional<std::vector<place::MappingChange>>> moves() override {
    using Moves = std::optional<std::vector<place::MappingChange>>;
    if (const auto kept = noted(link_->keep()); !kept) return std::unexpected(kept.error());
    if (const auto there = noted(link_->check_map()); !there) {
      return std::unexpected(there.error());
    }
    if (!feed_) return Moves();
    auto news = noted(link_->read_feed(*feed_));
    if (!news) return std::unexpected(news.error());
    if (news->ended) feed_.reset();
    if (news->ended || news->behind) return Moves();
    return Moves(std::move(news->changes));
  }
  [[nodiscard]] Result<place::LeafCounts> counts() override {
    const std::uint64_t now = base::monotonic_ns();
    if (now - counted_ns_ < count_every_ns_) return place::LeafCounts();
    counted_ns_ = now;
    return noted(link_->read_counts());
  }
  Result<void> begin_generation() override { return noted(link_->begin_generation()); }
  Result<void> end_generations_before() override { return noted(link_->end_generations_before()); }

  void keep() { static_cast<void>(link_->keep()); }
  void call_while_reading(std::function<void()> meanwhile) {
    link_->call_while_reading(std::move(meanwhile));
  }
  /// Whether something of it has failed.
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  Node(std::unique_ptr<IndexLink> link, const Options& options, std::size_t number)
      : link_(std::move(link)),
        number_(static_cast<std::uint16_t>(number)),
        count_every_ns_(options.count_every_ns) {
    if (auto feed = link_->follow(); feed) feed_ = std::move(*feed);
  }
  template <class T>
  Result<T> noted(Result<T> done) {
    failed_ = failed_ || !done;
    return done;
  }

  const std::unique_ptr<IndexLink> link_;
  const std::uint16_t number_;
  const std::uint64_t count_every_ns_;
  std::optional<place::FeedCursor> feed_;  // nothing: there is none, and trees are read instead
  std::uint64_t counted_ns_ = 0;
  bool failed_ = false;
};

/// A switch, by its control.
class TopologyRun::Switch final : public place::TopologySwitch {
 public:
  Switch(TopologyRun& run, std::string control) : run_(run), control_(std::move(control)) {}

  // A connection that has ended is not replaced before the next call: so that a switch that has
  // begun anew is found out of reach first.
  Result<std::string> ask(std::string_view word, std::string_view body) override {
    if (std::exchange(was_lost_, false) || base::monotonic_ns() < rests_until_ns_) {
      return fail(Code::connection_lost);
    }
    if (!client_) {
      auto connected = dataplane::ControlClient::connect(control_);
      if (!connected) return refuse(connected.error());
      client_.emplace(std::move(*connected));
    }
    const bool is_long = word == "put" || word == "change";
    return ask(word, body, is_long ? dataplane::kControlLongestNs : kTopologyShortNs,
               [this] { run_.keep(this); });
  }
  /// Where it has been asked nothing for long: it is not to forget the map.
  void keep() {
    if (!client_ || base::monotonic_ns() - asked_ns_ < kTopologyAskNs) return;
    was_lost_ = !ask("held", {}, kTopologyBesideNs, {});
  }
  void clear() {
    if (!client_ || base::monotonic_ns() < rests_until_ns_) return;
    static_cast<void>(ask("put", dataplane::SwitchProgram().text(), kTopologyShortNs, {}));
  }
  /// Nothing: the last call was answered.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] const std::string& words() const { return words_; }

 private:
  std::unexpected<Error> refuse(const Error& error) {
    error_ = error;
    words_.clear();
    return fail(Code::connection_lost);
  }
  Result<std::string> ask(std::string_view word, std::string_view body, std::uint64_t longest_ns,
                          const std::function<void()>& while_waiting) {
    const std::uint64_t begun_ns = base::monotonic_ns();
    auto answer = client_->ask(word, body, while_waiting, longest_ns);
    asked_ns_ = base::monotonic_ns();
    if (answer) {
      error_.reset();
      words_.clear();
      return answer;
    }
    if (!client_->refused().empty()) {
      error_ = answer.error();
      words_ = client_->refused();
      if (word == "put") rests_until_ns_ = asked_ns_ + kTopologyRefusedRestsNs;
      return fail(Code::invalid_argument);
    }
    if (asked_ns_ - begun_ns >= longest_ns) rests_until_ns_ = asked_ns_ + kTopologySlowRestsNs;
    client_.reset();
    return refuse(answer.error());
  }

  TopologyRun& run_;
  const std::string control_;
  std::optional<dataplane::ControlClient> client_;
  bool was_lost_ = false;  // beside the controller's calls, which is to find it out of reach
  std::uint64_t asked_ns_ = 0;
  std::uint64_t rests_until_ns_ = 0;
  std::optional<Error> error_;
  std::string words_;
};

TopologyRun::TopologyRun(Options options) : options_(std::move(options)) {
  ESPALIER_ASSERT(options_.nodes.size() == options_.budget.ways.size());
  ESPALIER_ASSERT(options_.controls.size() == options_.budget.switches.size());
  for (const std::string& control : options_.controls) {
    switches_.push_back(std::make_unique<Switch>(*this, control));
  }
}

TopologyRun::~TopologyRun() = default;

std::expected<TopologyRun::Round, TopologyRun::Fault> TopologyRun::round() {
  if (!controller_) {
    if (auto fault = open()) return std::unexpected(*std::move(fault));
  }
  const auto done = controller_->round();
  if (!done) return std::unexpected(lose(done.error()));
  // What took long was not the nodes' fault, whose leases are renewed in time.
  keep();
  if (restart_) {
    next_restart_ = controller_->next_restart();
    if (!controller_->is_restarting()) restart_ = nullptr;
  }
  return *done;
}

// Those that are open stay so while another one is missing: each that is closed costs its node a
// redirect key, of which it remembers so many.
std::optional<TopologyRun::Fault> TopologyRun::open() {
  if (missing_ && base::monotonic_ns() < opens_again_ns_) {
    keep();
    return missing_;
  }
  nodes_.erase(std::ranges::find_if(nodes_, [](const auto& node) { return node->failed(); }),
               nodes_.end());
  while (nodes_.size() != options_.nodes.size()) {
    const std::size_t number = nodes_.size();
    auto opened = Node::open(options_, number);
    if (!opened) {
      missing_ = Fault{Fault::Side::node, number, opened.error(), {}};
      open_rests_ns_ =
          std::clamp(2 * open_rests_ns_, kTopologyOpenRestsMinNs, kTopologyOpenRestsMaxNs);
      opens_again_ns_ = base::monotonic_ns() + open_rests_ns_;
      return missing_;
    }
    nodes_.push_back(std::move(*opened));
    nodes_.back()->call_while_reading([this] { keep(); });
    keep();
  }
  missing_.reset();
  open_rests_ns_ = 0;
  std::vector<place::TopologyNode*> nodes;
  for (const auto& node : nodes_) nodes.push_back(node.get());
  std::vector<place::TopologySwitch*> switches;
  for (const auto& each : switches_) switches.push_back(each.get());
  controller_.emplace(options_.budget, std::move(nodes), std::move(switches), base::monotonic_ns);
  controller_->read_no_sooner_than(options_.read_every_ns);
  // What may take longer than leases stand is done by a thread beside this one.
  controller_->do_long_work_by([this](const place::TopologyController::Work& work) {
    auto done = std::async(std::launch::async, work);
    while (done.wait_for(kTopologyLook) != std::future_status::ready) keep();
    done.get();
  });
  if (restart_) controller_->restart_all(restart_, next_restart_);
  return std::nullopt;
}

// Its keys are void, or will be soon, and tables that name them are worse than none.
TopologyRun::Fault TopologyRun::lose(const Error& error) {
  Fault fault{Fault::Side::node, 0, error, {}};
  for (std::size_t i = nodes_.size(); i-- != 0;) {
    if (nodes_[i]->failed()) fault.number = i;
  }
  clear();
  controller_.reset();
  nodes_.clear();
  return fault;
}

// Renews leases, and has switches know that their controller is there: all, or all others than the
// one that is waited for. What is lost is noticed when it is needed next.
void TopologyRun::keep(const Switch* besides) {
  for (const auto& node : nodes_) node->keep();
  if (std::exchange(keeps_, true)) return;
  for (const auto& each : switches_) {
    if (each.get() != besides) each->keep();
  }
  keeps_ = false;
}

std::vector<TopologyRun::Fault> TopologyRun::faults() const {
  std::vector<Fault> faults;
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    const Switch& of = *switches_[i];
    if (of.error()) faults.push_back({Fault::Side::control, i, *of.error(), of.words()});
  }
  return faults;
}

void TopologyRun::clear() {
  for (const auto& each : switches_) each->clear();
}

void TopologyRun::restart_all(std::function<void(std::size_t number)> restart) {
  restart_ = std::move(restart);
  next_restart_ = 0;
  if (controller_) controller_->restart_all(restart_);
}

}  // namespace espalier::client
