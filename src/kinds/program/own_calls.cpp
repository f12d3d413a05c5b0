// SPDX-License-Identifier: Apache-2.0
#include "kinds/program/own_calls.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "wire/message.hpp"
#include "wire/samples.hpp"

namespace espalier {

static_assert(kOwnCalls == wire::kOwnOffloadIds);

namespace {

/// The numbers of calls that are in use, and by what.
class TakenNumbers {
 public:
  /// Reserves a number. Returns what is wrong with it; empty: nothing.
  std::string take(std::uint8_t number, const std::string& by) {
    if (number < kOwnCalls) return by + " has a number below 128, which is the protocol's";
    std::string& taken = by_[number - kOwnCalls];
    if (!taken.empty()) return by + " has the number of " + taken;
    taken = by;
    return {};
  }

 private:
  std::array<std::string, 128> by_{};
};

std::string mistake_of(const KindRow& row, TakenNumbers& taken) {
  if (!wire::is_sample_word(row.name)) return "a kind's name is no word of small letters";
  const std::string kind = "the kind " + std::string(row.name);
  if (static_cast<std::uint8_t>(row.number) < kOwnKinds) {
    return kind + " has a number below 128, which is the protocol's";
  }
  if (row.form_bytes_max > kOwnFormBytesMax) return kind + " takes forms that are too long";
  if (row.memory_percent > 100) return kind + " takes more than all memory";
  std::string wrong = taken.take(row.create_number, "what makes an object of " + kind);
  if (wrong.empty()) wrong = taken.take(row.open_number, "what opens an object of " + kind);
  return wrong;
}

std::string mistake_of(const OffloadRow& row, TakenNumbers& taken) {
  if (!wire::is_sample_word(row.name)) return "a call's name is no word of small letters";
  const std::string call = "the call " + std::string(row.name);
  if (row.request_bytes_min > row.request_bytes_max ||
      row.request_bytes_max > kOwnRequestBytesMax) {
    return call + " has no such lengths of requests";
  }
  if (row.reply_bytes_max > kOwnReplyBytesMax) return call + " has replies that are too long";
  if (row.right < OffloadRight::read || row.right > OffloadRight::admin) {
    return call + " takes no right that there is";
  }
  return taken.take(row.number, call);
}

}  // namespace

std::string Offloads::mistake() const {
  TakenNumbers taken;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (std::string wrong = mistake_of(kinds[i].row, taken); !wrong.empty()) return wrong;
    const auto same = [&](const OwnKind& other) { return other.row.number == kinds[i].row.number; };
    if (std::find_if(kinds.begin(), kinds.begin() + static_cast<std::ptrdiff_t>(i), same) !=
        kinds.begin() + static_cast<std::ptrdiff_t>(i)) {
      return "two kinds have one number";
    }
    if (!kinds[i].make) return "a kind has nothing that makes its objects";
  }
  for (const Offload& call : calls) {
    if (std::string wrong = mistake_of(call.row, taken); !wrong.empty()) return wrong;
    if (!call.step) return "a call has no handler";
    const auto its_kind = [&](const OwnKind& kind) { return kind.row.number == call.row.kind; };
    if (call.row.kind != ObjectKind::any && std::ranges::none_of(kinds, its_kind)) {
      return "the call " + std::string(call.row.name) + " is of a kind that there is not";
    }
  }
  return {};
}

namespace program {

OwnCalls::OwnCalls(Offloads offloads, std::uint64_t store_bytes_max)
    : threw_(std::move(offloads.threw)) {
  ESPALIER_ASSERT(offloads.mistake().empty());
  for (OwnKind& kind : offloads.kinds) {
    const std::uint64_t share = store_bytes_max / 100 * kind.row.memory_percent;
    ServedKind& served =
        kinds_.emplace_back(std::move(kind), std::string(), std::make_shared<KindMemory>(share));
    served.name = served.kind.row.name;
    served.kind.row.name = served.name;
  }
  for (Offload& call : offloads.calls) {
    Offload& served = calls_.emplace_back(std::move(call));
    served.row.name = texts_.emplace_back(served.row.name);
    served.row.summary = texts_.emplace_back(served.row.summary);
    by_number_[served.row.number] = &served;
  }
}

const ServedKind* OwnCalls::find(ObjectKind number) const {
  for (const ServedKind& kind : kinds_) {
    if (kind.kind.row.number == number) return &kind;
  }
  return nullptr;
}

// The catalogue has no room for the words of an exception's error, so they are kept here.
TableResult<OwnCalls::Object> OwnCalls::create(catalog::Catalog& catalog, const ServedKind& kind,
                                               std::string_view name, std::string_view form) const {
  using Made = Result<std::shared_ptr<catalog::Object>>;
  if (form.size() > kind.kind.row.form_bytes_max) {
    return std::unexpected(
        TableError({Code::invalid_argument, 0, static_cast<std::uint32_t>(form.size())}));
  }
  std::string words;
  const auto make = [&](std::uint32_t id, const std::string& own_name) -> Made {
    auto memory = std::make_unique<ObjectMemory>(kind.memory);
    if (!memory->charge(sizeof(ProgramObject) + own_name.size() + form.size())) {
      return fail(Code::out_of_memory);
    }
    try {
      auto own = kind.kind.make({own_name, form, memory.get()});
      if (!own) return std::unexpected(own.error());
      if (*own == nullptr) return fail(Code::invalid_argument);
      return std::make_shared<ProgramObject>(id, kind.name, form, std::move(memory),
                                             std::move(*own));
    } catch (const std::bad_alloc&) {
      return fail(Code::out_of_memory);
    } catch (...) {
      TableError error = caught(kind.name, static_cast<std::uint32_t>(kind.kind.row.number));
      words = std::move(error.words);
      return std::unexpected(error.error);
    }
  };
  const auto entry = catalog.create_any(kind.kind.row.number, name, form, make);
  if (!entry) return std::unexpected(TableError(entry.error(), std::move(words)));
  return std::static_pointer_cast<ProgramObject>((*entry)->object);
}

TableResult<OwnCalls::Object> OwnCalls::open(const catalog::Catalog& catalog,
                                             const ServedKind& kind, std::string_view name) {
  const catalog::EntryPointer entry = catalog.find_any(name);
  if (entry == nullptr) return fail(Code::not_found);
  if (entry->kind != kind.kind.row.number) {
    return fail(Code::wrong_kind, static_cast<std::uint32_t>(entry->kind));
  }
  return std::static_pointer_cast<ProgramObject>(entry->object);
}

OwnCalls::Object OwnCalls::find(const catalog::Catalog& catalog, ObjectKind kind,
                                std::uint32_t id) {
  const catalog::EntryPointer entry = catalog.find_any(id);
  if (entry == nullptr || entry->kind != kind) return nullptr;
  return std::static_pointer_cast<ProgramObject>(entry->object);
}

TableError OwnCalls::caught(std::string_view call, std::uint32_t detail) const {
  const auto report = [&](std::string_view what) {
    if (threw_) threw_(call, what);
  };
  try {
    throw;
  } catch (const std::exception& thrown) {
    report(thrown.what());
  } catch (...) {
    report("something that is no std::exception");
  }
  std::string words = "the handler of ";
  words.append(call).append(" threw an exception");
  return {{Code::unsupported, 0, detail}, std::move(words)};
}

}  // namespace program
}  // namespace espalier
