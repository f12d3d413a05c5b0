// SPDX-License-Identifier: Apache-2.0
// Offloads on one key: get, put, insert, update, erase; and the no-op, by which rings are measured.
#include "offload/reads.hpp"
#include "offload/walk_answer.hpp"

namespace espalier::offload {
namespace {

void start_noop(Engine& engine, Request& request) { engine.answer(request, {}); }

void start_get(Engine& engine, Request& request) {
  ReadSource source;
  if (!source.take(engine, request)) return;
  if (!source.payload().empty()) {
    return engine.fail(
        request, {Code::invalid_argument, 0, static_cast<std::uint32_t>(source.payload().size())});
  }
  request.walk = {};
  request.walk.op = Op::get;
  request.walk.key = request.key();
  engine.walk(request, source.held());
}

void start_write(Engine& engine, Request& request, Op op) {
  request.walk = {};
  request.walk.op = op;
  request.walk.key = request.key();
  request.walk.value = request.payload();
  engine.walk(request);
}

void start_put(Engine& engine, Request& request) { start_write(engine, request, Op::put); }
void start_insert(Engine& engine, Request& request) { start_write(engine, request, Op::insert); }
void start_update(Engine& engine, Request& request) { start_write(engine, request, Op::update); }
void start_erase(Engine& engine, Request& request) { start_write(engine, request, Op::erase); }

// A value that the client has no room for is read again when it has.
void got(Engine& engine, Request& request, const Completion& done) {
  if (!done.ok) return engine.fail(request, done.error);
  if (!engine.response_fits(request, done.value.size())) return engine.on_writable(request);
  engine.answer(request, header_of(done), {done.value});
}

constexpr Limits kRead{
    .map = true, .payload_bytes_max = sizeof(std::uint64_t), .at_snapshot = true};
constexpr Limits kErase{.map = true};
constexpr Limits kWrite{.map = true, .payload_bytes_max = wire::kMessageBytesMax};

const Offload kOffloads[] = {
    {.id = wire::OffloadId::noop,
     .name = "noop",
     .format = "nothing",
     .summary = "answers",
     .limits = {.key_bytes_max = 65535, .payload_bytes_max = wire::kMessageBytesMax},
     .start = start_noop},
    {.id = wire::OffloadId::get,
     .name = "get",
     .format = "key; snapshot, if the header says so",
     .summary = "answers whether the key is there, its value, and its version",
     .limits = kRead,
     .start = start_get,
     .walked = got,
     .resume = start_get},
    {.id = wire::OffloadId::put,
     .name = "put",
     .format = "key; value",
     .summary = "inserts or replaces",
     .limits = kWrite,
     .start = start_put,
     .walked = answer_walk},
    {.id = wire::OffloadId::insert,
     .name = "insert",
     .format = "key; value",
     .summary = "writes if the key is absent; answers whether it did",
     .limits = kWrite,
     .start = start_insert,
     .walked = answer_walk},
    {.id = wire::OffloadId::update,
     .name = "update",
     .format = "key; value",
     .summary = "writes if the key is present; answers whether it did",
     .limits = kWrite,
     .start = start_update,
     .walked = answer_walk},
    {.id = wire::OffloadId::erase,
     .name = "erase",
     .format = "key",
     .summary = "removes the key if it is there; answers whether it was",
     .limits = kErase,
     .start = start_erase,
     .walked = answer_walk},
};

}  // namespace

std::span<const Offload> point_offloads() { return kOffloads; }

}  // namespace espalier::offload
