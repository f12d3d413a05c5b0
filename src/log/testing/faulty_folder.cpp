// SPDX-License-Identifier: Apache-2.0
#include "log/testing/faulty_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/system_error.hpp"
#include "log/format.hpp"

namespace espalier::log {
namespace {

using base::refused_by_system;

constexpr std::size_t kTornBytes = 512;  // a unit may be torn at multiples of this

}  // namespace

class FaultyFile final : public LogFile {
 public:
  FaultyFile(FaultyFolder& folder, std::shared_ptr<FaultyFolder::Contents> contents)
      : folder_(folder), contents_(std::move(contents)) {}

  [[nodiscard]] Result<std::size_t> write(std::uint64_t offset,
                                          std::span<const std::byte> bytes) override {
    if (folder_.before_write_) folder_.before_write_();
    const std::scoped_lock lock(folder_.mutex_);
    return folder_.write(*contents_, offset, bytes);
  }
  [[nodiscard]] bool waits_for_disk() const override { return folder_.ahead_; }
  [[nodiscard]] bool takes_several() const override {
    const std::scoped_lock lock(folder_.mutex_);
    return !folder_.faults_.cached;
  }
  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset,
                                         std::span<std::byte> bytes) override {
    const std::scoped_lock lock(folder_.mutex_);
    if (folder_.crashes()) return refused_by_system(EIO);
    const auto& seen = contents_->seen;
    if (offset >= seen.size()) return 0;
    const std::size_t count = std::min<std::size_t>(bytes.size(), seen.size() - offset);
    std::memcpy(bytes.data(), seen.data() + offset, count);
    folder_.bytes_read_ += count;
    return count;
  }
  [[nodiscard]] Result<void> fill(std::uint64_t bytes) override {
    const std::scoped_lock lock(folder_.mutex_);
    return folder_.fill(*contents_, bytes);
  }
  [[nodiscard]] Result<void> extend(std::uint64_t bytes, std::uint64_t leave) override {
    const std::scoped_lock lock(folder_.mutex_);
    return folder_.extend(*contents_, bytes, leave);
  }
  [[nodiscard]] Result<void> sync() override {
    const std::scoped_lock lock(folder_.mutex_);
    if (folder_.crashes()) return refused_by_system(EIO);
    FaultyFolder::flush(*contents_);
    return {};
  }
  [[nodiscard]] Result<std::uint64_t> size() override {
    const std::scoped_lock lock(folder_.mutex_);
    return contents_->seen.size();
  }

 private:
  FaultyFolder& folder_;
  std::shared_ptr<FaultyFolder::Contents> contents_;
};

class FaultyLock final : public FolderLock {
 public:
  explicit FaultyLock(FaultyFolder& folder) : folder_(folder) {}
  ~FaultyLock() override { folder_.locked_ = false; }

 private:
  FaultyFolder& folder_;
};

bool FaultyFolder::crashes() {
  if (memory_ends_in_ != 0 && --memory_ends_in_ == 0) throw std::bad_alloc();
  if (crash_in_ != 0 && --crash_in_ == 0) crashed_ = true;
  return crashed_;
}

void FaultyFolder::restart(bool power_lost) {
  ESPALIER_ASSERT(!locked_);
  crash_in_ = 0;
  crashed_ = false;
  if (!power_lost) return;
  // A journal keeps the order of changes of names, up to some point.
  for (auto kept = random_.below(changes_.size() + 1); kept > 0; --kept) {
    changes_.front()(lasting_);
    changes_.pop_front();
  }
  changes_.clear();
  for (auto& [name, file] : lasting_) {
    for (const std::uint64_t unit : file->dirty) {
      const std::size_t begin = std::min<std::size_t>(unit * kUnitBytes, file->lasting.size());
      std::size_t count = std::min(kUnitBytes, file->lasting.size() - begin);
      const std::size_t whole = count;
      if (random_.chance(0.1)) count = std::min(count, random_.below(8) * kTornBytes);
      if (random_.chance(0.5)) count = 0;
      std::memcpy(file->lasting.data() + begin, file->seen.data() + begin, count);
      if (count < whole && file->lied.contains(unit)) ++lost_by_lies_;
    }
    file->dirty.clear();
    file->forgotten.clear();
    file->lied.clear();
    file->seen = file->lasting;
  }
  seen_ = lasting_;
}

void FaultyFolder::flip(std::string_view name, std::uint64_t offset, unsigned bit) {
  Contents& file = *seen_.find(name)->second;
  const std::byte mask = std::byte{1} << bit;
  file.seen.at(offset) ^= mask;
  file.lasting.at(offset) ^= mask;
}

std::vector<std::byte>& FaultyFolder::bytes(std::string_view name) {
  return seen_.find(name)->second->seen;
}

void FaultyFolder::put(std::string_view name, std::vector<std::byte> bytes) {
  const auto file = std::make_shared<Contents>(Contents{bytes, bytes, {}, {}, {}});
  seen_[std::string(name)] = lasting_[std::string(name)] = file;
}

Result<std::unique_ptr<FolderLock>> FaultyFolder::lock() {
  const std::scoped_lock lock(mutex_);
  if (locked_) return fail(Code::busy);
  if (crashes()) return refused_by_system(EIO);
  locked_ = true;
  return std::make_unique<FaultyLock>(*this);
}

Result<std::vector<std::string>> FaultyFolder::names() {
  const std::scoped_lock lock(mutex_);
  if (crashes()) return refused_by_system(EIO);
  std::vector<std::string> names;
  for (const auto& entry : seen_) names.push_back(entry.first);
  return names;
}

void FaultyFolder::change_names(NameChange change) {
  change(seen_);
  changes_.push_back(std::move(change));
}

Result<std::unique_ptr<LogFile>> FaultyFolder::create(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  if (crashes()) return refused_by_system(EIO);
  if (seen_.contains(name)) return refused_by_system(EEXIST);
  const auto file = std::make_shared<Contents>();
  change_names([file, of = std::string(name)](Names& names) { names[of] = file; });
  return std::make_unique<FaultyFile>(*this, file);
}

Result<std::unique_ptr<LogFile>> FaultyFolder::open(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  if (crashes()) return refused_by_system(EIO);
  const auto found = seen_.find(name);
  if (found == seen_.end()) return refused_by_system(ENOENT);
  return std::make_unique<FaultyFile>(*this, found->second);
}

Result<void> FaultyFolder::rename(std::string_view from, std::string_view to) {
  const std::scoped_lock lock(mutex_);
  if (crashes()) return refused_by_system(EIO);
  if (!seen_.contains(from)) return refused_by_system(ENOENT);
  change_names([of = std::string(from), now = std::string(to)](Names& names) {
    auto node = names.extract(of);
    names[now] = node.mapped();
  });
  return {};
}

Result<void> FaultyFolder::remove(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  if (crashes()) return refused_by_system(EIO);
  if (!seen_.contains(name)) return refused_by_system(ENOENT);
  change_names([of = std::string(name)](Names& names) { names.erase(of); });
  return {};
}

Result<void> FaultyFolder::sync() {
  const std::scoped_lock lock(mutex_);
  if (crashes()) return refused_by_system(EIO);
  if (random_.chance(faults_.folder_fails)) return refused_by_system(EIO);
  for (const NameChange& change : changes_) change(lasting_);
  changes_.clear();
  return {};
}

std::uint64_t FaultyFolder::bytes_used() const {
  std::uint64_t bytes = 0;
  for (const auto& entry : seen_) bytes += entry.second->seen.size();
  return bytes;
}

Result<std::size_t> FaultyFolder::write(Contents& file, std::uint64_t offset,
                                        std::span<const std::byte> bytes) {
  ESPALIER_ASSERT(offset % kUnitBytes == 0 && bytes.size() % kUnitBytes == 0);
  ESPALIER_ASSERT(reinterpret_cast<std::uintptr_t>(bytes.data()) % kUnitBytes == 0);
  ESPALIER_ASSERT(offset + bytes.size() <= file.seen.size());  // what is written was filled before
  const bool was_crashed = crashed_;
  if (crashes()) {
    if (!was_crashed || late_) write_any(file, offset, bytes, false);
    return refused_by_system(EIO);
  }
  if (random_.chance(faults_.fails)) {
    write_any(file, offset, bytes, faults_.cached);
    return refused_by_system(EIO);
  }
  if (random_.chance(faults_.shortens)) {
    const std::size_t step = random_.chance(0.5) ? kUnitBytes : kTornBytes;
    bytes = bytes.first(random_.below(bytes.size() / step) * step);
  }
  const bool lie = random_.chance(faults_.lies);
  lies_ += lie;
  for (std::size_t done = 0; done < bytes.size(); done += kUnitBytes) {
    const std::size_t at = offset + done;
    const std::size_t count = std::min(bytes.size() - done, kUnitBytes);
    write_unit(file, at, bytes.subspan(done, count));
    if (lie) file.lied.insert(at / kUnitBytes);
    if (lie || count < kUnitBytes) continue;
    std::memcpy(file.lasting.data() + at, file.seen.data() + at, kUnitBytes);
    file.dirty.erase(at / kUnitBytes);
  }
  return bytes.size();
}

void FaultyFolder::write_any(Contents& file, std::uint64_t offset, std::span<const std::byte> bytes,
                             bool forgotten) {
  const double part = random_.unit();
  for (std::size_t done = 0; done < bytes.size(); done += kUnitBytes) {
    if (!random_.chance(part)) continue;
    write_unit(file, offset + done, bytes.subspan(done, kUnitBytes));
    if (!forgotten) continue;
    const std::uint64_t unit = (offset + done) / kUnitBytes;
    file.dirty.erase(unit);
    file.forgotten.insert(unit);
  }
}

void FaultyFolder::write_unit(Contents& file, std::uint64_t offset,
                              std::span<const std::byte> bytes) {
  std::memcpy(file.seen.data() + offset, bytes.data(), bytes.size());
  file.dirty.insert(offset / kUnitBytes);
}

Result<void> FaultyFolder::fill(Contents& file, std::uint64_t bytes) {
  ++fills_;
  const bool is_full = bytes_used() + bytes > faults_.bytes_max;
  if (crashes() || is_full) {
    file.seen.resize(random_.below(bytes));
    file.lasting.resize(random_.below(file.seen.size() + 1));
    return refused_by_system(is_full ? ENOSPC : EIO);
  }
  file.seen.assign(bytes, std::byte{0});
  flush(file);
  return {};
}

Result<void> FaultyFolder::extend(Contents& file, std::uint64_t bytes, std::uint64_t leave) {
  const std::uint64_t now = file.seen.size();
  if (bytes <= now) return {};
  const std::uint64_t used = bytes_used() + (bytes - now);
  if (leave != 0 && used + leave > faults_.bytes_max) return refused_by_system(ENOSPC);
  const bool is_full = used > faults_.bytes_max;
  if (crashes() || is_full) {
    file.seen.resize(now + random_.below(bytes - now));
    file.lasting.resize(now + random_.below(file.seen.size() - now + 1));
    return refused_by_system(is_full ? ENOSPC : EIO);
  }
  file.seen.resize(bytes);
  file.lasting.resize(bytes);
  return {};
}

void FaultyFolder::flush(Contents& file) {
  for (const std::uint64_t unit : file.forgotten) {
    const auto at = static_cast<std::ptrdiff_t>(unit * kUnitBytes);
    std::copy_n(file.lasting.begin() + at, kUnitBytes, file.seen.begin() + at);
  }
  file.forgotten.clear();
  file.lasting = file.seen;
  file.dirty.clear();
  file.lied.clear();
}

}  // namespace espalier::log
