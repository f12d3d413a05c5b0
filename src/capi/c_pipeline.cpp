// SPDX-License-Identifier: Apache-2.0
// Of the C API: many requests in flight.
//
// The requests of one call are copied into a flight, which lives until all of them have completed
// and is then used again. A request's own tag is the address of its slot, which knows the caller's.
//
// Thread: one at a time.
#include <memory>
#include <span>
#include <vector>

#include "base/fork_mark.hpp"
#include "base/try_reserve.hpp"
#include "capi/c_handles.hpp"

namespace c = espalier::client::c;
using espalier::Completion;
using espalier::Item;
using espalier::Op;
using espalier::Request;
using espalier::Result;

struct espalier_pipeline final : private espalier::Handler {
 public:
  espalier_pipeline(c::Uses uses, espalier::Pipeline pipeline, espalier_pipeline_options options)
      : use_(std::move(uses)), options_(options), pipeline_(std::move(pipeline)) {}

  void submit(std::span<const espalier_request> requests) {
    Flight& flight = next_flight();
    flight.requests.clear();
    flight.slots.clear();
    flight.requests.reserve(requests.size());
    flight.slots.reserve(requests.size());
    for (const espalier_request& request : requests) {
      flight.slots.push_back({request.tag, &flight});
      flight.requests.push_back({.op = static_cast<Op>(request.op),
                                 .limit = request.limit,
                                 .tag = reinterpret_cast<std::uintptr_t>(&flight.slots.back()),
                                 .key = c::view(request.key),
                                 .high = c::view(request.high),
                                 .value = c::view(request.value)});
    }
    flight.unfinished = requests.size();
    free_.pop_back();
    const Working working(*this);
    try {
      pipeline_.submit(flight.requests, *this);
    } catch (...) {  // no memory, and none of them was submitted
      finished_.push_back(&flight);
      throw;
    }
  }
  std::size_t poll() {
    const Working working(*this);
    return pipeline_.poll();
  }
  [[nodiscard]] bool working() const { return working_; }
  [[nodiscard]] bool is_copy() const { return mark_.is_copy(); }

 private:
  struct Flight;
  struct Slot {
    std::uint64_t tag;
    Flight* flight;
  };
  struct Flight {
    std::vector<Request> requests;
    std::vector<Slot> slots;
    std::size_t unfinished = 0;
  };

  // While callbacks may come. What has finished meanwhile may be used again only afterwards, for
  // the pipeline may read a request until it has completed the next.
  class Working {
   public:
    explicit Working(espalier_pipeline& pipeline) : pipeline_(pipeline) {
      pipeline_.working_ = true;
    }
    ~Working() {
      pipeline_.working_ = false;
      auto& finished = pipeline_.finished_;
      pipeline_.free_.insert(pipeline_.free_.end(), finished.begin(), finished.end());
      finished.clear();
    }
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;

   private:
    espalier_pipeline& pipeline_;
  };

  static Slot& slot_of(std::uint64_t tag) {
    return *reinterpret_cast<Slot*>(static_cast<std::uintptr_t>(tag));
  }

  // The last of the free ones. All room that lists of flights will ever need is made here, so that
  // a completion needs none.
  Flight& next_flight() {
    if (free_.empty()) {
      espalier::base::reserve_more(flights_, 1);
      finished_.reserve(flights_.capacity());
      free_.reserve(flights_.capacity());
      flights_.push_back(std::make_unique<Flight>());
      free_.push_back(flights_.back().get());
    }
    return *free_.back();
  }

  void done(const Completion& completion) override {
    const Slot slot = slot_of(completion.tag);
    if (--slot.flight->unfinished == 0) finished_.push_back(slot.flight);
    const espalier_completion completed{
        .tag = slot.tag,
        .op = static_cast<std::uint32_t>(completion.op),
        .code = completion.ok ? ESPALIER_OK : static_cast<espalier_code>(completion.error.code),
        .detail = completion.ok ? 0 : completion.error.detail,
        .found = completion.found ? 1u : 0u,
        .applied = completion.applied ? 1u : 0u,
        .reserved = 0,
        .version = completion.version,
        .read_version = completion.read_version,
        .items = completion.items,
        .key = c::bytes_of(completion.key),
        .value = c::bytes_of(completion.value)};
    [&]() noexcept { options_.done(options_.context, &completed); }();
  }

  bool items(std::uint64_t tag, std::span<const Item> items) override {
    if (options_.items == nullptr) return true;
    return c::show_items(items, [&](const espalier_entry* entries, std::size_t count) {
      return options_.items(options_.context, slot_of(tag).tag, entries, count);
    });
  }

  const espalier::base::ForkMark mark_;
  c::Use use_;  // ends after the pipeline has
  const espalier_pipeline_options options_;
  std::vector<std::unique_ptr<Flight>> flights_;
  std::vector<Flight*> free_;
  std::vector<Flight*> finished_;
  bool working_ = false;
  espalier::Pipeline pipeline_;
};

namespace {

c::Check idle(const espalier_pipeline* pipeline) {
  const bool working = pipeline != nullptr && pipeline->working();
  return {"pipeline", working ? "is used by its own callback" : nullptr};
}

// The first request that is none.
c::Check good_requests(const espalier_request* requests, std::size_t count) {
  if (count != 0 && requests == nullptr) return {"requests", "is null"};
  for (const espalier_request& request : std::span(requests, count)) {
    if (request.op < ESPALIER_OP_GET || request.op > ESPALIER_OP_SCAN_FLOOR) {
      return {"requests", "has an op that is none"};
    }
    for (const espalier_bytes& bytes : {request.key, request.high, request.value}) {
      if (c::good(bytes, "").complaint != nullptr) {
        return {"requests", "has bytes with a size but no data"};
      }
    }
  }
  return {};
}

}  // namespace

espalier_code espalier_pipeline_open(const espalier_map* map,
                                     const espalier_pipeline_options* options,
                                     espalier_pipeline** pipeline) {
  const c::Check size = c::sized(options, sizeof *options, "options");
  const auto known = size.complaint == nullptr
                         ? c::taken(options, ESPALIER_PIPELINE_OPTIONS_INIT)
                         : espalier_pipeline_options ESPALIER_PIPELINE_OPTIONS_INIT;
  return c::run(__func__,
                {c::given(map, "map"), c::given(options, "options"), c::given(pipeline, "pipeline"),
                 size, c::given(known.done, "options.done")},
                [&]() -> Result<void> {
                  auto opened = espalier::Pipeline::open(map->map, known.in_flight);
                  if (!opened) return std::unexpected(opened.error());
                  *pipeline = new espalier_pipeline(map->uses, std::move(*opened), known);
                  return {};
                });
}

espalier_code espalier_pipeline_submit(espalier_pipeline* pipeline,
                                       const espalier_request* requests, size_t count) {
  return c::run(__func__,
                {c::given(pipeline, "pipeline"), idle(pipeline), good_requests(requests, count)},
                [&]() -> Result<void> {
                  if (pipeline->is_copy()) return espalier::fail(espalier::Code::forked);
                  if (count != 0) pipeline->submit({requests, count});
                  return {};
                });
}

espalier_code espalier_pipeline_poll(espalier_pipeline* pipeline, size_t* left) {
  return c::run(__func__, {c::given(pipeline, "pipeline"), idle(pipeline)}, [&]() -> Result<void> {
    if (pipeline->is_copy()) return espalier::fail(espalier::Code::forked);
    const std::size_t still = pipeline->poll();
    if (left != nullptr) *left = still;
    return {};
  });
}

espalier_code espalier_pipeline_run(espalier_pipeline* pipeline, const espalier_request* requests,
                                    size_t count) {
  return c::run(__func__,
                {c::given(pipeline, "pipeline"), idle(pipeline), good_requests(requests, count)},
                [&]() -> Result<void> {
                  if (pipeline->is_copy()) return espalier::fail(espalier::Code::forked);
                  if (count != 0) pipeline->submit({requests, count});
                  while (pipeline->poll() != 0) {
                  }
                  return {};
                });
}

espalier_code espalier_pipeline_close(espalier_pipeline* pipeline) {
  if (pipeline == nullptr) return ESPALIER_OK;
  return c::run(__func__, {idle(pipeline)}, [&]() -> Result<void> {
    while (pipeline->poll() != 0) {
    }
    delete pipeline;
    return {};
  });
}
