// SPDX-License-Identifier: Apache-2.0
#include "chain/testing/chain_world.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "chain/member.hpp"

namespace espalier::chain {
namespace {

constexpr std::uint64_t kFenceMs = 1000;
constexpr std::uint64_t kFenceNs = kFenceMs * 1'000'000;
constexpr std::uint64_t kTickNs = kFenceNs / 16;
constexpr std::uint64_t kChain = 77;
constexpr std::uint64_t kHealFences = 30;  // time for all members to rejoin

using Ids = std::vector<std::uint64_t>;

/// A machine: its disk survives crashes, its member does not.
struct Machine {
  std::uint32_t number = 0;
  std::unique_ptr<Member> member;  // null: it is down
  std::uint64_t life = 0;          // events of an earlier life are ignored
  Ids log;
  std::size_t durable = 0;  // of the log
  std::size_t base = 0;     // its size on becoming head: visible to readers there
  bool was_head = false;
  std::size_t kept = 0;  // of its first records it has released so many: no member gets these
  bool is_anew = false;  // its folder was cleared, and has no checkpoint yet
  std::uint64_t paused_until = 0;
  std::uint64_t full_until = 0;  // it has no room for records
  std::uint64_t deaf_until = 0;  // it gets no views
  struct Unanswered {
    std::uint64_t sequence;
    std::uint64_t id;
  };
  std::vector<Unanswered> unanswered;  // clients' appends
};

class World {
 public:
  World(std::uint64_t seed, const WorldTerms& terms) : random_(seed), terms_(terms) {
    view_.chain = kChain;
    view_.epoch = 1;
    view_.fence_ms = kFenceMs;
    machines_.reserve(terms.members);  // events keep references
    for (std::uint32_t i = 1; i <= terms.members; ++i) {
      Machine& machine = machines_.emplace_back();
      machine.number = i;
      view_.members.push_back({i, name_of(machine), "shm:/m"});
    }
    for (Machine& machine : machines_) {
      start(machine);
      at(random_.below(kTickNs), [this, &machine] { tick(machine); });
    }
    at(kTickNs, [this] { client(); });
    if (terms.rejoin) at(kFenceNs, [this] { add_one(); });
  }

  WorldResult run() {
    end_ns_ = (terms_.fences + kHealFences) * kFenceNs;
    while (result_.wrong.empty() && !events_.empty()) {
      const auto next = events_.begin();
      if (next->first.first > end_ns_) break;
      now_ = next->first.first;
      const std::function<void()> what = std::move(next->second);
      events_.erase(next);
      what();
    }
    if (result_.wrong.empty()) check_end();
    result_.epochs = view_.epoch;
    return result_;
  }

 private:
  void at(std::uint64_t delay_ns, std::function<void()> what) {
    events_.emplace(std::pair(now_ + delay_ns, order_++), std::move(what));
  }
  /// The same for a machine that may have crashed by then, and that acts later if it is paused.
  void on(Machine& machine, std::uint64_t delay_ns, std::function<void()> what) {
    at(delay_ns, [this, &machine, life = machine.life, what = std::move(what)] {
      if (machine.life != life || !machine.member) return;
      if (now_ < machine.paused_until) return on(machine, machine.paused_until - now_, what);
      what();
    });
  }
  [[nodiscard]] bool heals() const { return now_ >= terms_.fences * kFenceNs; }
  [[nodiscard]] bool chance(double probability) { return !heals() && random_.chance(probability); }
  void wrong(std::string what) {
    if (result_.wrong.empty()) result_.wrong = std::move(what);
  }

  // --- machines ----------------------------------------------------------------------------------

  void start(Machine& machine) {
    ++machine.life;
    machine.log.resize(machine.durable);
    machine.was_head = false;
    machine.unanswered.clear();
    machine.member =
        std::make_unique<Member>(Member::Start{kChain, machine.number, machine.log.size(), now_});
  }
  /// Unflushed records may be on the disk all the same.
  void crash(Machine& machine) {
    ++result_.crashes;
    ++machine.life;
    machine.durable += random_.below(machine.log.size() - machine.durable + 1);
    machine.member.reset();
    const std::uint64_t away = random_.below(4) == 0 ? kFenceNs / 8 : kFenceNs * 8;
    at(random_.below(away), [this, &machine, life = machine.life] {
      if (machine.life == life) come_again(machine);
    });
  }
  void come_again(Machine& machine) {
    if (machine.is_anew) return begin_anew(machine);
    start(machine);
  }
  void trouble(Machine& machine) {
    if (chance(terms_.crash)) return crash(machine);
    if (chance(terms_.pause)) machine.paused_until = now_ + random_.below(3 * kFenceNs);
    if (chance(terms_.full)) machine.full_until = now_ + random_.below(4 * kFenceNs);
    if (chance(terms_.deaf)) machine.deaf_until = now_ + random_.below(6 * kFenceNs);
    if (chance(terms_.cut)) {
      const auto from = machine.number;
      const auto to = machines_[random_.below(terms_.members)].number;
      const bool both = random_.below(2) == 0;
      cuts_.insert({from, to});
      if (both) cuts_.insert({to, from});
      at(random_.below(4 * kFenceNs), [this, from, to, both] {
        cuts_.erase({from, to});
        if (both) cuts_.erase({to, from});
      });
    }
  }
  void tick(Machine& machine) {
    at(kTickNs, [this, &machine] { tick(machine); });
    if (heals()) {
      cuts_.clear();
      machine.paused_until = std::min(machine.paused_until, now_);
      if (!machine.member && !machine.is_anew) start(machine);
    }
    if (!machine.member || now_ < machine.paused_until) return;
    trouble(machine);
    if (!machine.member || now_ < machine.paused_until) return;
    machine.member->tick(now_);
    if (random_.below(4) == 0 || machine.member->take_wants_view()) read_view(machine);
    if (const auto proposal = machine.member->proposal(now_)) propose(machine, *proposal);
    if (random_.below(8) == 0) let_go(machine);
    if (machine.member->is_joining() && machine.member->is_behind()) return begin_anew(machine);
    go_on(machine);
  }
  /// Releases some of the first records of its log, as after a checkpoint.
  void let_go(Machine& machine) {
    const std::size_t most = std::min(machine.member->releasable(), machine.durable);
    if (most > machine.kept) machine.kept += random_.below(most - machine.kept);
  }

  // --- rejoining --------------------------------------------------------------------------------

  [[nodiscard]] Machine* machine_of(std::uint32_t number) {
    const auto found = std::ranges::find(machines_, number, &Machine::number);
    return found != machines_.end() ? &*found : nullptr;
  }
  [[nodiscard]] std::string name_of(const Machine& machine) const {
    return "m" + std::to_string(&machine - machines_.data());
  }
  void add_one() {
    at(heals() ? kFenceNs / 4 : random_.below(8 * kFenceNs), [this] { add_one(); });
    if (view_.joining) return;
    for (Machine& machine : machines_) {
      if (view_.find(std::string_view(name_of(machine))) != nullptr) continue;
      view_ = view_.with_joining(name_of(machine), "shm:/m");
      return begin_anew(machine);
    }
  }
  /// Clears its folder. It takes a new number, so that no member mistakes it for its earlier self,
  /// and fetches the records of a checkpoint of the tail.
  void begin_anew(Machine& machine) {
    ++machine.life;
    machine.member.reset();
    machine.unanswered.clear();
    machine.is_anew = true;
    machine.log.clear();
    machine.durable = machine.kept = 0;
    machine.paused_until = 0;
    again_later(machine, [this, &machine] {
      if (!view_.joining || view_.joining->name != name_of(machine)) return;
      view_ = view_.with_joining(name_of(machine), "shm:/m");
      machine.number = view_.joining->number;
      again_later(machine, [this, &machine] { fetch(machine); });
    });
  }
  void again_later(Machine& machine, std::function<void()> what) {
    at(membership_delay(), [&machine, life = machine.life, what = std::move(what)] {
      if (machine.life == life) what();
    });
  }
  void fetch(Machine& machine) {
    const Machine* const from = machine_of(view_.members.back().number);
    const bool is_joining = view_.joining && view_.joining->number == machine.number;
    if (!is_joining || from == nullptr || !from->member) return begin_anew(machine);
    const std::uint64_t checkpoint = random_.between(from->kept, from->durable);
    const bool is_durable = checkpoint <= from->member->releasable();
    if (!is_durable || !from->member->is_tail() || chance(0.1)) return begin_anew(machine);
    machine.log.assign(from->log.begin(),
                       from->log.begin() + static_cast<std::ptrdiff_t>(checkpoint));
    machine.durable = machine.kept = checkpoint;
    machine.is_anew = false;
    start(machine);
  }
  /// Sends messages that are due, and answers clients.
  void go_on(Machine& machine) {
    Member& member = *machine.member;
    member.keeps_from(machine.kept + 1);
    if (member.is_head() && !std::exchange(machine.was_head, true)) {
      machine.base = machine.log.size();
    }
    std::vector<Message> due;
    member.add_beats(now_, due);
    while (auto append = member.append_due(now_)) {
      if (append->first <= machine.kept) break;  // a joining member detects that, and starts afresh
      append->last = append->number = random_.between(append->first, append->last);
      member.appended(*append);
      due.push_back(*append);
    }
    for (const Message& message : due) send(machine, message);
    answer_clients(machine);
  }
  void persist(Machine& machine) {
    on(machine, random_.below(kFenceNs / 20), [this, &machine, size = machine.log.size()] {
      machine.durable = std::max(machine.durable, size);
      machine.member->persisted(machine.durable);
      go_on(machine);
    });
  }

  // --- the network -------------------------------------------------------------------------------

  /// A request; an append brings its records. It is answered once, or its sender gets one failure.
  void send(Machine& from, const Message& message) {
    Ids records;
    if (message.kind == MessageKind::append) {
      const auto first = from.log.begin() + static_cast<std::ptrdiff_t>(message.first - 1);
      records.assign(first, from.log.begin() + static_cast<std::ptrdiff_t>(message.last));
    }
    const std::uint64_t request = ++requests_;
    open_.insert(request);
    if (Machine* const to = machine_of(message.to)) {
      deliver(message, *to,
              [this, to, message, records, request] { arrive(*to, message, records, request); });
    }
    at(random_.between(kFenceNs / 2, 4 * kFenceNs),
       [this, &from, message, request, life = from.life] {
         if (open_.erase(request) == 0 || from.life != life) return;
         on(from, 0, [this, &from, message] { from.member->lost(message, now_); });
       });
  }
  /// A machine that is down or has restarted gets no messages sent to an earlier life.
  void deliver(const Message& message, Machine& to, const std::function<void()>& what) {
    if (cuts_.contains({message.from, message.to}) || chance(terms_.lose)) return;
    const std::size_t copies = chance(0.02) ? 2 : 1;
    for (std::size_t i = 0; i < copies; ++i) on(to, delay(), what);
  }
  [[nodiscard]] std::uint64_t delay() {
    if (chance(terms_.late)) return random_.below(3 * kFenceNs);
    return random_.below(kFenceNs / 50);
  }
  void arrive(Machine& machine, const Message& message, const Ids& records, std::uint64_t request) {
    const auto received =
        machine.member->receive(message, heals() || now_ >= machine.full_until, now_);
    if (machine.member->has_lost()) wrong("a member that has lost nothing thinks so");
    if (received.take_first != 0) {
      const std::size_t from = received.take_first - message.first;
      machine.log.insert(machine.log.end(), records.begin() + static_cast<std::ptrdiff_t>(from),
                         records.end());
      persist(machine);
    }
    if (received.answer) {
      Machine* const asker = machine_of(message.from);
      if (asker == nullptr) return;
      deliver(*received.answer, *asker, [this, asker, answer = *received.answer, request] {
        if (open_.erase(request) == 0) return;
        static_cast<void>(asker->member->receive(answer, true, now_));
        go_on(*asker);
      });
    }
    go_on(machine);
  }

  // --- the membership ----------------------------------------------------------------------------

  [[nodiscard]] std::uint64_t membership_delay() {
    return random_.below(chance(terms_.slow) ? 2 * kFenceNs : kFenceNs / 20);
  }
  void read_view(Machine& machine) {
    at(membership_delay(),
       [this, &machine, life = machine.life] { show_view(machine, life, view_, false); });
  }
  /// The proposer may give up before the proposal is accepted.
  void propose(Machine& machine, const View& proposal) {
    if (chance(0.2)) {
      on(machine, random_.below(kFenceNs / 4), [&machine] { machine.member->proposal_failed(); });
    }
    at(membership_delay(), [this, &machine, life = machine.life, proposal] {
      const bool is_taken = proposal.epoch == view_.epoch + 1;
      if (is_taken && proposal.members.size() > view_.members.size()) ++result_.joined;
      if (is_taken) view_ = proposal;
      show_view(machine, life, view_, true);
    });
  }
  void show_view(Machine& machine, std::uint64_t life, const View& view, bool was_proposal) {
    at(membership_delay(), [this, &machine, life, view, was_proposal] {
      if (machine.life != life) return;
      on(machine, 0, [this, &machine, view, was_proposal] {
        if (was_proposal) machine.member->proposal_failed();
        if (heals() || now_ >= machine.deaf_until) machine.member->adopt(view, now_);
        go_on(machine);
      });
    });
  }

  // --- clients -----------------------------------------------------------------------------------

  void client() {
    at(random_.below(kTickNs), [this] { client(); });
    Machine& machine = machines_[random_.below(machines_.size())];
    if (!machine.member || now_ < machine.paused_until) return;
    if (machine.member->serves_until_ns(now_) <= now_) return;
    if (random_.below(2) == 0) return read(machine, seen_.size());
    machine.log.push_back(++ids_);
    machine.unanswered.push_back({machine.log.size(), ids_});
    persist(machine);
  }
  /// A read is answered a moment later, and only if the member serves then.
  void read(Machine& machine, std::size_t seen_before) {
    on(machine, random_.below(kTickNs), [this, &machine, seen_before] {
      const std::size_t shown = visible(machine);
      on(machine, random_.below(kTickNs), [this, &machine, seen_before, shown] {
        if (machine.member->serves_until_ns(now_) <= now_) return;
        ++result_.reads;
        if (shown < seen_before) wrong("a read shows less than was seen before");
        see(machine, shown);
      });
    });
  }
  [[nodiscard]] static std::size_t visible(const Machine& machine) {
    return std::max<std::size_t>(machine.base, machine.member->releasable());
  }
  void answer_clients(Machine& machine) {
    if (machine.member->serves_until_ns(now_) <= now_) return;
    std::erase_if(machine.unanswered, [&](const Machine::Unanswered& append) {
      if (append.sequence > machine.member->releasable()) return false;
      if (machine.log[append.sequence - 1] != append.id) wrong("another record has its place");
      ++result_.acknowledged;
      see(machine, append.sequence);
      return true;
    });
  }
  /// A client read, or was acknowledged, so much of a machine's log.
  void see(const Machine& machine, std::size_t shown) {
    for (std::size_t i = 0; i < std::min(shown, seen_.size()); ++i) {
      if (machine.log[i] != seen_[i]) return wrong("what was seen has changed");
    }
    for (std::size_t i = seen_.size(); i < shown; ++i) seen_.push_back(machine.log[i]);
  }

  /// Checks that all members have the same log, with all that was seen, and serve again.
  void check_end() {
    if (terms_.rejoin && view_.members.size() != machines_.size())
      return wrong("who was left out does not come in");
    const Machine& head = *machine_of(view_.members.front().number);
    if (!head.member) return wrong("the head has thrown its folder away");
    if (head.member->serves_until_ns(now_) <= now_) {
      return wrong("nobody serves: " + std::string(head.member->waits_for(now_)));
    }
    see(head, head.member->releasable());
    if (head.log.size() < seen_.size()) wrong("the head lacks what was seen");
    for (const MemberEntry& entry : view_.members) {
      const Ids& log = machine_of(entry.number)->log;
      const std::size_t same = std::min(log.size(), head.log.size());
      if (!std::equal(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(same),
                      head.log.begin())) {
        wrong("members differ");
      }
      if (log.size() < seen_.size()) wrong("a member lacks what was seen");
    }
  }

  base::Random random_;
  const WorldTerms terms_;
  WorldResult result_;
  std::uint64_t now_ = kFenceNs;
  std::uint64_t end_ns_ = 0;
  std::uint64_t order_ = 0;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::function<void()>> events_;
  View view_;  // of the membership service
  std::vector<Machine> machines_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> cuts_;
  std::uint64_t requests_ = 0;
  std::set<std::uint64_t> open_;  // neither answered nor given up
  std::uint64_t ids_ = 0;
  Ids seen_;
};

}  // namespace

WorldResult run_world(std::uint64_t seed, const WorldTerms& terms) {
  return World(seed, terms).run();
}

}  // namespace espalier::chain
