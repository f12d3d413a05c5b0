// SPDX-License-Identifier: Apache-2.0
#include "node/chain_node.hpp"

#include <fmt/format.h>

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "catalog/catalog.hpp"
#include "engine/services.hpp"
#include "log/log_error.hpp"
#include "node/chain_folder.hpp"
#include "wire/message.hpp"

namespace espalier::node {
namespace {

constexpr std::size_t kInboxBytesMax = std::size_t{8} << 20;
constexpr std::size_t kAppendBytes = std::size_t{256} << 10;
constexpr std::size_t kAppendsATurn = 2;
constexpr std::size_t kAppliedATurn = 64;
// Most bytes of a record, so that an append fits in one message, with its length and header.
constexpr std::size_t kRecordBytesMax = wire::kMessageBytesMax - wire::kRequestHeaderBytes -
                                        sizeof(chain::Message) - sizeof(std::uint64_t);
constexpr std::uint64_t kPollPauseNs = 50'000;  // while an answer is awaited

bool may_be_in_a_chain(ObjectKind kind) {
  return kind == ObjectKind::map || kind == ObjectKind::hash;
}

/// Why an object is not supported in a chain: it has no records, or they do not reproduce it.
std::optional<std::string> refused_object(const catalog::Catalog& catalog) {
  const catalog::Inventory inventory = catalog.inventory();
  for (const catalog::EntryPointer& entry : inventory.entries) {
    if (entry->durability.value_or(Durability::sync) != Durability::sync) {
      return fmt::format("a chain keeps all that was answered, and '{}' was made to be {}",
                         entry->name, name(*entry->durability));
    }
    if (may_be_in_a_chain(entry->kind)) continue;
    return fmt::format("a chain takes ordered maps and hash maps alone, and '{}' is a {}",
                       entry->name, name(entry->kind));
  }
  return std::nullopt;
}

/// The member of this name, or the joining node.
const chain::MemberEntry* find_entry(const chain::View& view, std::string_view name) {
  if (view.joining && view.joining->name == name) return &*view.joining;
  return view.find(name);
}

void refuse_others(offload::ServingGate& gate, std::span<const offload::Kind> own) {
  gate.why_refused = "a node of a chain takes ordered maps and hash maps alone";
  for (const auto kinds : {offload::all_kinds(), own}) {
    for (const offload::Kind& kind : kinds) {
      const bool is_session = kind.objects == ObjectKind::any && kinds.data() != own.data();
      if (is_session || may_be_in_a_chain(kind.objects)) continue;
      for (const auto group : kind.calls) {
        for (const offload::Offload& call : group) {
          if (call.changes) gate.refused[static_cast<std::uint8_t>(call.id)] = true;
        }
      }
    }
  }
}

}  // namespace

// --- start and end -------------------------------------------------------------------------------

std::expected<std::unique_ptr<ChainNode>, std::string> ChainNode::start(const Terms& terms) {
  const Config::Chain& asked = terms.config.chain;
  auto membership = chain::open_membership(asked.members);
  if (!membership) return std::unexpected(membership.error());
  const auto view = (*membership)->read();
  if (!view) return std::unexpected(view.error());
  if (!*view) {
    return std::unexpected(
        fmt::format("there is no chain at '{}': espalier chain create makes one", asked.members));
  }
  const chain::MemberEntry* const self = find_entry(**view, asked.name);
  if (self == nullptr) {
    return std::unexpected(fmt::format(
        "the chain at '{0}' has no member '{1}' (any more): what it lacks of the chain's records, "
        "or has besides, nobody knows; 'espalier chain add' has it join again",
        asked.members, asked.name));
  }
  if (auto mistake = refused_object(terms.services.catalog())) {
    return std::unexpected(std::move(*mistake));
  }
  if (auto claimed =
          claim_chain_folder(terms.config.data.dir, **view, self->number, terms.recovered);
      !claimed) {
    return std::unexpected(claimed.error());
  }
  try {
    std::unique_ptr<ChainNode> node(
        new ChainNode(terms, std::move(*membership), **view, self->number));
    if (auto begun = node->begin(**view); !begun) return std::unexpected(begun.error());
    return node;
  } catch (const std::system_error&) {
    return std::unexpected("the system has no thread for the chain");
  }
}

ChainNode::ChainNode(const Terms& terms, std::unique_ptr<chain::Membership> membership,
                     const chain::View& view, std::uint32_t self)
    : terms_(terms),
      name_(terms.config.chain.name),
      membership_(std::move(membership)),
      gate_(terms.services.parts.make<offload::ServingGate>()),
      target_(std::make_unique<offload::RedoTarget>(terms.services, terms.own_kinds)),
      links_(std::make_unique<ChainLinks>([this] { event_.signal(); }, terms.services.budget)),
      reader_(terms.log_folder, terms.store, terms.writer.segments()),
      given_(terms.log_folder, terms.store),
      member_(
          {.chain = view.chain, .self = self, .held = terms.recovered, .now_ns = base::boot_ns()}),
      since_ns_(base::boot_ns()) {
  refuse_others(gate_, terms.own_kinds);
}

std::expected<void, std::string> ChainNode::begin(const chain::View& view) {
  if (!event_.open()) return std::unexpected("the system has no descriptor for the chain");
  terms_.writer.room().bound_records(kRecordBytesMax);
  terms_.writer.acknowledgements().await_replicas();
  terms_.writer.keep_from(1);  // until the others' records are known
  terms_.buffer.open(terms_.writer, terms_.recovered, [this] { event_.signal(); });
  const chain::MemberEntry& self = *find_entry(view, name_);
  auto door = ChainDoor::open(terms_.config, self.address, terms_.secrets, *this);
  if (!door) {
    return std::unexpected(
        fmt::format("cannot listen for the chain at {}: {}", self.address, message(door.error())));
  }
  door_ = std::move(*door);
  {
    const std::lock_guard lock(mutex_);
    member_.adopt(view, base::boot_ns());
  }
  thread_ = std::thread([this] { run(); });
  membership_thread_ = std::thread([this] { keep_membership(); });
  return {};
}

// First no more messages arrive, then none are sent, then the log retains nothing for others.
ChainNode::~ChainNode() {
  door_.reset();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    membership_wake_.notify_all();
  }
  event_.signal();
  if (thread_.joinable()) thread_.join();
  if (membership_thread_.joinable()) membership_thread_.join();
  if (ending_.valid()) ending_.wait();
  gate_.until_ns.store(0, std::memory_order_release);
  links_.reset();
  terms_.buffer.close();
}

bool ChainNode::begins_anew() const {
  const std::lock_guard lock(mutex_);
  return begins_anew_;
}

std::optional<std::string> ChainNode::await_head(const std::function<bool()>& stopped) {
  std::unique_lock lock(mutex_);
  while (!is_head_) {
    if (!why_ended_.empty()) return why_ended_;
    changed_.wait_for(lock, std::chrono::milliseconds(20));
    lock.unlock();
    const bool stops = stopped && stopped();
    lock.lock();
    if (stops) return "";
  }
  return std::nullopt;
}

void ChainNode::end(const std::string& why) {
  gate_.until_ns.store(0, std::memory_order_release);
  {
    const std::lock_guard lock(mutex_);
    if (!why_ended_.empty()) return;
    why_ended_ = why;
    since_ns_ = base::boot_ns();
    changed_.notify_all();
  }
  if (terms_.ended) terms_.ended(why);
}

// --- messages of other members -------------------------------------------------------------------

Result<chain::Message> ChainNode::hear(const chain::Message& message, std::string_view records) {
  const bool is_append = message.kind == chain::MessageKind::append;
  const bool is_beat = message.kind == chain::MessageKind::beat;
  const std::uint64_t count = is_append ? message.last - message.first + 1 : 0;
  const bool good = is_append ? message.first != 0 && message.last >= message.first : is_beat;
  const auto unpacked = chain::unpack_records(records, count);
  if (!good || !unpacked || message.reserved != 0) return fail(Code::invalid_argument);
  std::deque<Waiting> taken;
  for (std::uint64_t i = 0; i < count; ++i)
    taken.push_back({message.first + i, std::string((*unpacked)[i])});
  const std::lock_guard lock(mutex_);
  if (!why_ended_.empty() || stopping_ || lacks_memory_) return fail(Code::connection_lost);
  const bool has_room = inbox_bytes_ < kInboxBytesMax;
  const auto received = member_.receive(message, has_room, base::boot_ns());
  if (received.take_first != 0 && !enqueue(received.take_first, taken)) {
    return fail(Code::out_of_memory);
  }
  event_.signal();
  if (member_.has_lost()) return fail(Code::connection_lost);
  if (!received.answer) return fail(Code::not_found);
  return *received.answer;
}

/// Requires: the lock. Without memory for records that the member has taken, it must end.
bool ChainNode::enqueue(std::uint64_t first, std::deque<Waiting>& records) {
  try {
    for (Waiting& each : records) {
      if (each.sequence < first) continue;
      const std::size_t bytes = each.record.size();
      inbox_.push_back(std::move(each));
      inbox_bytes_ += bytes;
    }
    return true;
  } catch (const std::bad_alloc&) {
    lacks_memory_ = true;
    return false;
  }
}

// From now on the log after that checkpoint is retained, up to a bound.
Result<chain_calls::Piece> ChainNode::fetch(const chain_calls::Wanted& wanted, std::string& data) {
  {
    const std::lock_guard lock(mutex_);
    const auto joining = member_.feeds();
    const bool is_known = joining && joining->number == wanted.member && why_ended_.empty();
    if (!is_known || wanted.chain != member_.view().chain) return fail(Code::not_found);
  }
  if (wanted.number == 0) {
    if (const auto opened = given_.open_newest(); !opened) return std::unexpected(opened.error());
    const std::lock_guard lock(mutex_);
    fetches_ = static_cast<std::uint32_t>(wanted.member);
    fetches_from_ = given_.sequence();
  } else if (wanted.number != given_.number()) {
    return fail(Code::not_found);
  }
  const chain_calls::Piece piece{terms_.store, given_.number(), given_.bytes()};
  const auto read = given_.read(wanted.offset, chain_calls::kPieceBytes, data);
  if (!read) return std::unexpected(read.error());
  return piece;
}

ChainNumbers ChainNode::numbers() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t now_ns = base::boot_ns();
  const bool serves = is_head_ && why_ended_.empty() && member_.serves_until_ns(now_ns) > now_ns;
  return {.epoch = member_.epoch(),
          .members = member_.view().members.size(),
          .serves = serves ? 1U : 0U,
          .held = member_.held(),
          .acknowledged = member_.acknowledged()};
}

std::string ChainNode::status() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t now_ns = base::boot_ns();
  const bool serves = is_head_ && member_.serves_until_ns(now_ns) > now_ns;
  std::string_view waits_for = member_.waits_for(now_ns);
  const auto joining = member_.feeds();
  if (is_behind_ && !joining)
    waits_for = "the next member lacks records that this one does not keep any more";
  if (!why_ended_.empty()) waits_for = why_ended_;
  std::string_view role = member_.is_tail() ? "tail" : "middle";
  if (member_.is_head()) role = "head";
  if (member_.is_joining()) role = "joining";
  if (member_.is_out()) role = "none";
  std::string behind;
  if (joining) {
    behind =
        fmt::format("joining_lacks {}\n", member_.held() - std::min(member_.held(), joining->held));
  }
  return fmt::format(
      "role {}\nstate {}\nsince_ms {}\nepoch {}\nheld {}\nacknowledged {}\nwaits_for {}\n"
      "membership {}\n{}",
      role, serves ? "serves" : "waits", (now_ns - since_ns_) / 1'000'000, member_.epoch(),
      member_.held(), member_.acknowledged(), serves ? "" : waits_for,
      no_membership_.empty() ? "read" : no_membership_, behind);
}

// --- its thread ----------------------------------------------------------------------------------

void ChainNode::run() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    bool moved = false;
    try {
      moved = turn();
    } catch (const std::bad_alloc&) {  // retried in the next turn
    }
    wait(moved);
  }
}

bool ChainNode::turn() {
  if (const auto failed = terms_.writer.acknowledgements().error()) {
    end("its log takes nothing any more: " + log::message(*failed));
  }
  bool moved = apply_some();
  std::uint64_t releasable = 0;
  std::uint64_t acknowledged = 0;
  {
    const std::lock_guard lock(mutex_);
    if (member_.epoch() != met_epoch_) {
      std::ranges::move(links_->meet(member_.view(), member_.self()), std::back_inserter(gone_));
      met_epoch_ = member_.epoch();
      membership_wake_.notify_all();
    }
    const std::uint64_t now_ns = base::boot_ns();
    decide(now_ns);
    set_gate(now_ns);  // before the mark releases answers
    releasable = member_.releasable();
    acknowledged = member_.acknowledged();
  }
  end_where_it_is_no_member();
  terms_.writer.acknowledgements().replicate(releasable);
  terms_.buffer.release_to(acknowledged);
  moved = add_append_from_disk() || moved;
  moved = send() || moved;
  ended_.clear();
  moved = links_->turn(ended_) || moved;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t now_ns = base::boot_ns();
    for (const ChainLinks::Ended& each : ended_) {
      if (each.answer) {
        static_cast<void>(member_.receive(*each.answer, true, now_ns));
      } else {
        member_.lost(each.sent, now_ns);
      }
    }
    set_gate(now_ns);
  }
  return moved || !ended_.empty();
}

// The folder of a node that begins anew no longer counts, whichever node starts with it next.
void ChainNode::end_where_it_is_no_member() {
  bool begins_anew = false;
  std::string_view why;
  ChainFolder folder;
  {
    const std::lock_guard lock(mutex_);
    folder = {member_.view().chain, member_.self(), true};
    begins_anew = member_.is_behind() && member_.is_joining();
    if (begins_anew) why = "no member has the records any more that it lacks";
    if (member_.is_out()) why = "it was left out of the chain";
    if (lacks_memory_) why = "it had no memory for records of the chain";
    if (member_.has_lost()) why = "its log lacks records that the chain has acknowledged";
    if (why.empty() || !why_ended_.empty()) return;
  }
  if (!begins_anew) return end(std::string(why));
  if (const auto said = write_chain_folder(terms_.config.data.dir, folder); !said) {
    return end(said.error());
  }
  const std::lock_guard lock(mutex_);
  begins_anew_ = true;
  why_ended_ = why;
  changed_.notify_all();
}

/// Requires: the lock. After the end nothing is sent or taken.
void ChainNode::decide(std::uint64_t now_ns) {
  member_.persisted(terms_.buffer.written());
  keep_for_joining();
  member_.tick(now_ns);
  if (!why_ended_.empty() || member_.has_lost()) return;
  std::vector<chain::Message> beats;
  member_.add_beats(now_ns, beats);
  for (const chain::Message& beat : beats) due_.push_back({beat, {}});
  add_appends(now_ns);
  if (member_.take_wants_view()) wants_view_ = true;
  if (auto proposal = member_.proposal(now_ns)) proposal_ = std::move(proposal);
  if (wants_view_ || proposal_) membership_wake_.notify_all();
}

void ChainNode::add_appends(std::uint64_t now_ns) {
  for (std::size_t i = 0; i < kAppendsATurn; ++i) {
    auto append = member_.append_due(now_ns);
    if (!append) return;
    std::string records;
    const std::uint64_t last =
        terms_.buffer.pack(append->first, append->last, kAppendBytes, records);
    if (last < append->first) return;  // add_append_from_disk() sends it
    is_behind_ = false;
    append->last = append->number = last;
    due_.push_back({*append, std::move(records)});
    member_.appended(*append);
  }
}

/// Sends records that no buffer has any more to a member that lacks many. Reads the disk without
/// the lock, so the member is asked again afterwards. Returns whether there were some.
bool ChainNode::add_append_from_disk() {
  std::optional<chain::Message> append;
  {
    const std::lock_guard lock(mutex_);
    if (why_ended_.empty()) append = member_.append_due(base::boot_ns());
  }
  const std::uint64_t in_buffer = terms_.buffer.first();
  if (!append || append->first >= in_buffer) return false;
  std::string records;
  const auto last =
      reader_.read(append->first, std::min(append->last, in_buffer - 1),
                   [&](std::uint64_t, std::span<const std::byte> record) {
                     if (!records.empty() && records.size() + record.size() > kAppendBytes) {
                       return false;
                     }
                     chain::pack_record(record, records);
                     return true;
                   });
  if (!last && last.error().fault == log::LogFault::no_memory) return false;  // later
  if (!last) end("its log cannot be read: " + log::message(last.error()));
  const std::lock_guard lock(mutex_);
  is_behind_ = last && *last < append->first;
  const auto due = member_.append_due(base::boot_ns());
  if (!last || is_behind_ || !due) return false;
  if (due->epoch != append->epoch || due->first != append->first) return false;
  append->last = append->number = *last;
  member_.appended(*append);
  due_.push_back({*append, std::move(records)});
  return true;
}

/// Requires: the lock. Retains the segments of unacknowledged records, and those that a joining
/// node lacks, unless the log comes near its bound, at which nothing would be acknowledged.
void ChainNode::keep_for_joining() {
  const auto joining = member_.feeds();
  std::uint64_t from = ~std::uint64_t{0};
  if (joining && terms_.writer.bytes() < terms_.log_bytes_max / 4 * 3) {
    if (joining->number == fetches_) from = fetches_from_;
    if (joining->held != 0) from = joining->held + 1;
  }
  if (from == ~std::uint64_t{0}) fetches_ = 0;
  // The log's mark includes what recovery found, which the next member may lack.
  terms_.writer.keep_from(std::min(from, member_.acknowledged() + 1));
  if (joining) member_.keeps_from(terms_.writer.segments().first_sequence());
}

/// Returns whether there was anything.
bool ChainNode::send() {
  for (const Outgoing& each : due_) {
    bool left = false;
    try {
      left = links_->say(each.message, each.records);
    } catch (const std::bad_alloc&) {
    }
    if (left) continue;
    const std::lock_guard lock(mutex_);
    const std::uint64_t now_ns = base::boot_ns();
    if (each.message.kind == chain::MessageKind::append) {
      member_.unsent(each.message, now_ns);
    } else {
      member_.lost(each.message, now_ns);
    }
  }
  const bool had_some = !due_.empty();
  due_.clear();
  return had_some;
}

bool ChainNode::apply_some() {
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!why_ended_.empty()) return false;
    if (applies_.empty()) applies_.swap(inbox_);
  }
  std::uint64_t bytes = 0;
  for (; count < kAppliedATurn && bytes < kInboxBytesMax / 8 && !applies_.empty(); ++count) {
    const auto applied = apply(applies_.front());
    if (!applied) {
      end(applied.error());
      return true;
    }
    if (!*applied) break;
    bytes += applies_.front().record.size();
    applies_.pop_front();
  }
  if (count == 0) return false;
  const std::lock_guard lock(mutex_);
  inbox_bytes_ -= bytes;
  return true;
}

/// Applies a record and appends it to the log. Returns whether there was room for it. Errors: a
/// sentence; the member must end.
std::expected<bool, std::string> ChainNode::apply(const Waiting& next) {
  auto room = catalog::RedoRoom::reserve(&terms_.writer, next.record.size());
  if (!room && room.error().code == Code::busy) return false;
  if (!room) {
    return std::unexpected(fmt::format("there is no room for record {} in its log: {}",
                                       next.sequence, message(room.error())));
  }
  std::memcpy(room->bytes().data(), next.record.data(), next.record.size());
  const std::lock_guard applying(applying_);
  const auto bytes = room->bytes();
  const auto applied = target_->apply({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!applied) {
    return std::unexpected(
        fmt::format("record {} cannot be applied: {}", next.sequence, message(applied.error())));
  }
  const std::uint64_t sequence = room->hand_over();
  if (sequence == next.sequence) return true;
  return std::unexpected(
      fmt::format("record {} came where {} was expected", next.sequence, sequence));
}

/// Requires: the lock.
void ChainNode::set_gate(std::uint64_t now_ns) {
  const std::uint64_t until_ns = why_ended_.empty() ? member_.serves_until_ns(now_ns) : 0;
  gate_.until_ns.store(until_ns, std::memory_order_release);
  if (until_ns <= now_ns || is_head_) return;
  target_.reset();
  is_head_ = true;
  since_ns_ = now_ns;
  changed_.notify_all();
}

// An answer that another member WRITEs into its memory wakes no thread.
void ChainNode::wait(bool moved) {
  if (moved) return;
  std::uint64_t most_ns = 0;
  {
    const std::lock_guard lock(mutex_);
    most_ns = member_.view().fence_ms * 1'000'000 / 16;
  }
  most_ns = std::min(most_ns, links_->waits() ? kPollPauseNs : links_->sleep_limit_ns());
  const timespec most{.tv_sec = static_cast<time_t>(most_ns / 1'000'000'000),
                      .tv_nsec = static_cast<long>(most_ns % 1'000'000'000)};
  pollfd waits{.fd = event_.number(), .events = POLLIN, .revents = 0};
  if (::ppoll(&waits, 1, &most, nullptr) > 0) event_.clear();
}

// --- the membership's thread ---------------------------------------------------------------------

// A link that is being opened closes up to T later, long enough for others to fall silent, too.
void ChainNode::end_aside(std::vector<ChainLinks::LinkPointer> links) {
  if (links.empty()) return;
  if (ending_.valid()) ending_.wait();
  try {
    ending_ =
        std::async(std::launch::async, [ended = std::move(links)]() mutable { ended.clear(); });
  } catch (const std::system_error&) {  // without a thread they have closed here
  }
}

void ChainNode::keep_membership() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto pause =
        std::chrono::milliseconds(std::max<std::uint64_t>(1, member_.view().fence_ms / 4));
    membership_wake_.wait_for(
        lock, pause, [this] { return stopping_ || wants_view_ || proposal_ || !gone_.empty(); });
    if (stopping_) return;
    const auto proposal = std::exchange(proposal_, std::nullopt);
    auto gone = std::exchange(gone_, {});
    wants_view_ = false;
    lock.unlock();
    end_aside(std::move(gone));
    std::string wrong;
    if (proposal) {
      if (const auto taken = membership_->replace(*proposal); !taken) wrong = taken.error();
    }
    const auto view = membership_->read();
    if (!view) wrong = view.error();
    lock.lock();
    no_membership_ = std::move(wrong);
    if (proposal) member_.proposal_failed();
    if (view && *view) member_.adopt(**view, base::boot_ns());
    event_.signal();
    // Limits the rate of reads: wanted views come soon, and a failing membership is spared.
    const auto least =
        std::chrono::milliseconds(std::max<std::uint64_t>(1, member_.view().fence_ms / 16));
    membership_wake_.wait_for(lock, least, [this] { return stopping_; });
  }
}

}  // namespace espalier::node
