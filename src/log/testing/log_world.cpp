// SPDX-License-Identifier: Apache-2.0
#include "log/testing/log_world.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "log/log.hpp"

namespace espalier::log {
namespace {

constexpr std::uint64_t kSegmentBytes = 16 * kUnitBytes;
constexpr std::uint64_t kNode = 7;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

std::string text_in(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A write that has begun.
struct UnderWay {
  explicit UnderWay(const LogWriter& writer) : write(writer.pending_write()) {}
  PendingWrite write;
  std::uint64_t marked = 0;  // what was acknowledged when it began
  bool carried_out = false;
};

class World {
 public:
  World(std::uint64_t seed, const WorldTerms& terms)
      : random_(seed), folder_(random_()), terms_(terms) {}

  WorldResult run() {
    for (unsigned life = 0; life < terms_.lives && result_.wrong.empty(); ++life) {
      if (!open()) break;
      live();
      die();
    }
    return std::move(result_);
  }

 private:
  void wrong(std::string what) {
    if (result_.wrong.empty()) result_.wrong = std::move(what);
  }

  /// Recovers, perhaps after some crashes meanwhile, and accepts the loss that damage has done.
  bool open() {
    folder_.set({});
    std::optional<std::uint64_t> accepted;
    for (int tries = 0;; ++tries) {
      if (tries < 3 && random_.chance(0.4)) folder_.crash_in(1 + random_.below(25));
      auto log = Log::open(folder_, options(accepted), reading());
      if (log) {
        log_ = std::move(*log);
        break;
      }
      if (folder_.crashed()) {
        ++result_.recovery_crashes;
        restart();
        continue;
      }
      if (!check_damage(log.error())) return false;
      accepted = log.error().sequence;
    }
    if (accepted) acknowledged_ = log_->writer().durable();
    return check_recovered();
  }

  /// Damage must have been done since the last time, and no smaller loss is accepted than it is.
  bool check_damage(const LogError& error) {
    ++result_.damages;
    folder_.crash_in(0);
    const bool has_place = !error.file.empty() && error.sequence != 0;
    const bool is_late = error.sequence >= lied_from_ || error.sequence > acknowledged_;
    if (!damaged_ || !has_place || (terms_.faults.lies > 0 && !is_late)) {
      wrong("recovery: " + message(error));
    } else if (Log::open(folder_, options(error.sequence + 1), reading())) {
      wrong("a loss was accepted that is not: " + message(error));
    }
    return result_.wrong.empty();
  }

  LogOptions options(std::optional<std::uint64_t> accept_loss_from) const {
    LogOptions options;
    options.recovery = {kNode, checkpoint_, accept_loss_from};
    options.writer.segment_bytes = kSegmentBytes;
    options.writer.block_bytes_max = 2 * kUnitBytes;
    options.writer.flush_bytes_max = 5 * kUnitBytes;
    options.writer.writes_max = terms_.writes_max;
    options.threads = false;
    return options;
  }

  ApplyRecord reading() {
    recovered_.clear();
    return [this](std::uint64_t sequence, std::span<const std::byte> record) -> Result<void> {
      if (sequence != checkpoint_ + recovered_.size()) wrong("the order of sequences");
      recovered_.push_back(text_in(record));
      return {};
    };
  }

  bool check_recovered() {
    folder_.crash_in(0);
    const std::uint64_t end = log_->writer().durable();
    if (log_->recovered().cut) ++result_.cuts;
    if (end != checkpoint_ + recovered_.size() - 1)
      wrong("the end is another than that of records");
    // One bit may cost the last write, but what that has marked is not missing without an error. A
    // disk that lies may lose marks, too, but nothing that was written before the first lie.
    std::uint64_t least = acknowledged_;
    if (damaged_) least = std::min(least, terms_.flips ? marked_ : lied_from_ - 1);
    if (end < least) {
      wrong("acknowledged up to " + std::to_string(acknowledged_) + ", recovered to " +
            std::to_string(end));
    }
    for (std::size_t i = 0; i < recovered_.size(); ++i) {
      const std::uint64_t sequence = checkpoint_ + i;
      if (sequence > appended_.size() || appended_[sequence - 1] != recovered_[i]) {
        wrong("record " + std::to_string(sequence) + " is not the one that was appended");
        break;
      }
    }
    if (end > appended_.size()) wrong("more than was appended");
    appended_.resize(std::min<std::size_t>(end, appended_.size()));
    acknowledged_ = end;
    marked_ = 0;
    damaged_ = false;
    if (std::exchange(power_lost_, false)) lied_from_ = kNever;
    return result_.wrong.empty();
  }

  void live() {
    folder_.set(terms_.faults);
    if (random_.chance(0.8)) folder_.crash_in(1 + random_.below(60));
    const auto steps = random_.below(terms_.steps_max);
    for (std::uint64_t step = 0; step < steps && !folder_.crashed(); ++step) {
      const auto what = random_.below(20);
      if (what < 12) append();
      if (what >= 12 && what < 17) write_some();
      if (what == 17) static_cast<void>(log_->writer().prepare_spare());
      if (what == 18) remove_some();
    }
  }

  std::size_t record_size() {
    if (terms_.alike) return kUnitBytes + random_.below(500);
    const auto usual = random_.below(20);
    if (usual == 0) return random_.below(kSegmentBytes);
    return random_.below(usual < 10 ? 3000 : 100);
  }

  void append() {
    const std::size_t bytes = record_size();
    const auto room = log_->writer().reserve(bytes);
    if (!room) {
      const bool known = room.error().code == Code::value_too_long || failed_;
      if (!known) wrong("no room: " + espalier::message(room.error()));
      return;
    }
    if (random_.chance(0.05)) return log_->writer().give_back(*room);
    random_.fill(*room);
    const std::string text = text_in(*room);
    const std::uint64_t sequence = log_->writer().append(*room);
    appended_.push_back(text);
    ++result_.records;
    if (sequence != appended_.size()) wrong("a sequence was left out");
    log_->writer().acknowledgements().when_durable(sequence, [this, sequence](const LogError* bad) {
      if (bad != nullptr) return;
      if (failed_) wrong("acknowledged after an error");
      if (sequence != acknowledged_ + 1) wrong("not acknowledged in order");
      acknowledged_ = sequence;
    });
  }

  /// Begins a write, has the disk take one, or hears of one: in any order.
  void write_some() {
    if (terms_.writes_max == 1) return flush();
    for (auto steps = random_.below(6); steps > 0 && !folder_.crashed(); --steps) {
      if (random_.chance(0.5) && under_way_.size() < terms_.writes_max) {
        begin_write();
      } else if (!under_way_.empty()) {
        step_write(random_.below(under_way_.size()));
      }
    }
  }

  void begin_write() {
    auto write = std::make_unique<UnderWay>(log_->writer());
    const std::uint64_t lies = folder_.lies();
    const WriteBegun begun = log_->writer().begin(write->write);
    if (folder_.lies() != lies) lied_from_ = std::min(lied_from_, acknowledged_ + 1);
    if (begun == WriteBegun::later && under_way_.empty()) wrong("a write waits for none");
    write->marked = acknowledged_;
    if (begun == WriteBegun::begun) under_way_.push_back(std::move(write));
    note_failure();
  }

  /// One that was carried out ends, another is carried out.
  void step_write(std::size_t number) {
    UnderWay& one = *under_way_[number];
    if (!std::exchange(one.carried_out, true)) {
      const std::uint64_t lies = folder_.lies();
      log_->writer().carry_out(one.write);
      if (folder_.lies() != lies) lied_from_ = std::min(lied_from_, one.write.first());
      return;
    }
    log_->writer().end(one.write);
    if (number != 0) ++result_.overtaken;
    marks_.emplace_back(one.write.last(), one.marked);
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(number));
    note_marks();
    note_failure();
  }

  void end_writes() {
    while (!under_way_.empty()) step_write(random_.below(under_way_.size()));
  }

  /// Of writes that are acknowledged now.
  void note_marks() {
    std::erase_if(marks_, [this](const auto& mark) {
      if (mark.first > acknowledged_) return false;
      marked_ = std::max(marked_, mark.second);
      return true;
    });
  }

  void flush() {
    end_writes();
    const std::uint64_t before = acknowledged_;
    const std::uint64_t lies = folder_.lies();
    const auto flushed = log_->writer().flush();
    if (folder_.lies() != lies) lied_from_ = std::min(lied_from_, before + 1);
    if (acknowledged_ != before) marked_ = before;
    if (flushed && acknowledged_ != appended_.size()) wrong("a flush left somebody waiting");
    if (!flushed && !failed_) note_failure();
  }

  void note_failure() {
    const auto error = log_->writer().acknowledgements().error();
    if (!error || failed_) return;
    failed_ = true;
    if (folder_.crashed()) return;
    ++result_.failures;
    if (error->file.empty() || error->sequence != acknowledged_ + 1) {
      wrong("an error without a place: " + message(*error));
    }
  }

  /// A checkpoint is made, and what is before it is not needed any more.
  void remove_some() {
    const std::size_t before = log_->writer().segments().count();
    checkpoint_ = random_.between(checkpoint_, acknowledged_ + 1);
    static_cast<void>(log_->writer().remove_below(checkpoint_));
    result_.segments_removed += before - log_->writer().segments().count();
  }

  void die() {
    const bool cleanly = !folder_.crashed() && random_.chance(0.3);
    if (cleanly) {
      flush();
      if (log_->close()) marked_ = acknowledged_;
    } else {
      folder_.crash_in(1);
      end_late();
    }
    log_.reset();
    marks_.clear();
    failed_ = false;
    restart();
    if (terms_.flips && random_.chance(0.5)) flip_a_bit();
  }

  /// Of what is under way in a crash any part comes through.
  void end_late() {
    if (under_way_.size() > 1) ++result_.torn;
    folder_.write_late(true);
    end_writes();
    folder_.write_late(false);
  }

  void restart() {
    const bool power = terms_.power && random_.chance(0.7);
    const std::uint64_t lost = folder_.lost_by_lies();
    folder_.restart(power);
    if (folder_.lost_by_lies() != lost) damaged_ = true;
    if (power) power_lost_ = true;
    ++(power ? result_.power_losses : result_.kills);
  }

  void flip_a_bit() {
    auto names = *folder_.names();
    std::erase_if(names, [](const std::string& name) { return !segment_of(name, kInUse); });
    if (names.empty()) return;
    const std::string& name = names[random_.below(names.size())];
    const std::size_t bytes = folder_.bytes(name).size();
    // Headers are a small part, and zeros at the end a large one.
    const std::uint64_t offset = random_.below(random_.chance(0.2) ? sizeof(SegmentHeader) : bytes);
    folder_.flip(name, offset, static_cast<unsigned>(random_.below(8)));
    damaged_ = true;
  }

  base::Random random_;
  FaultyFolder folder_;
  WorldTerms terms_;
  WorldResult result_;
  std::unique_ptr<Log> log_;
  std::vector<std::string> appended_;   // by sequence - 1; those that recovery cut are gone
  std::vector<std::string> recovered_;  // from checkpoint_ on
  std::vector<std::unique_ptr<UnderWay>> under_way_;            // the oldest first
  std::vector<std::pair<std::uint64_t, std::uint64_t>> marks_;  // of writes up to a sequence
  std::uint64_t acknowledged_ = 0;
  std::uint64_t marked_ = 0;      // up to here, as the last write that was acknowledged says
  std::uint64_t checkpoint_ = 1;  // the first that is wanted
  bool failed_ = false;
  bool damaged_ = false;              // what was durable, since the last recovery
  bool power_lost_ = false;           // since then, too
  std::uint64_t lied_from_ = kNever;  // from this sequence on the disk may have lied
};

}  // namespace

WorldResult run_world(std::uint64_t seed, const WorldTerms& terms) {
  return World(seed, terms).run();
}

}  // namespace espalier::log
