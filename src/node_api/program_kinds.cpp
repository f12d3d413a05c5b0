// SPDX-License-Identifier: Apache-2.0
#include "node_api/program_kinds.hpp"

#include <utility>

#include "catalog/catalog.hpp"
#include "engine/call.hpp"
#include "engine/peer_posts.hpp"
#include "engine/principal.hpp"
#include "engine/services.hpp"
#include "kinds/program/running_call.hpp"
#include "node_api/node_store.hpp"
#include "node_api/program_posts.hpp"

namespace espalier::node_api {
namespace {

using offload::Call;
using offload::JobStep;
using offload::Next;
using Served = ProgramKinds::Served;

const Served& served_by(const Call& call) {
  return *static_cast<const Served*>(call.offload().context);
}

Next refuse(Call& call, const TableError& error) { return call.fail(error.error, error.words); }

/// What one request keeps from step to step.
struct ServedRequest {
  std::unique_ptr<program::RunningCall> running;
  ProgramPosts posts;
  bool over = false;
};

/// Begins a request. Null: it is asked of an object that is not there.
std::unique_ptr<program::RunningCall> begin(Call& call, const Served& served) {
  program::OwnCalls::Object object;
  if (served.call->row.kind != ObjectKind::any) {
    object = program::OwnCalls::find(call.catalog(), served.call->row.kind, call.map_number());
    if (object == nullptr) return nullptr;
  }
  const offload::PrincipalView who = call.principal();
  program::Caller caller{std::string(who.name), who.role, std::string(who.prefix)};
  auto& store = call.services().part<NodeStore>();
  store.serve(call.services(), served.own);
  static_cast<void>(call.scheduler_part<NodeStoreKeeper>());
  return std::make_unique<program::RunningCall>(*served.own, *served.call, call.payload(),
                                                std::move(object), std::move(caller), store);
}

Next answer(Call& call, program::RunningCall& running) {
  if (running.error()) return refuse(call, *running.error());
  return call.answer({}, {running.reply()});
}

// A step whose posts have ended at once gives others their turn before the next.
Next go_on_with_posts(Call& call, ServedRequest& request) {
  if (request.running->posts().empty()) return call.again();
  const auto waits = request.posts.go_on(call, *request.running);
  return waits ? *waits : call.again();
}

// Room for the reply is asked for before the first step, for what is done must be answered; and
// again before the answer, for others of the same ring may have taken it since.
Next serve_call(Call& call) {
  const Served& served = served_by(call);
  auto& request = call.state<ServedRequest>();
  if (request.running == nullptr) {
    request.running = begin(call, served);
    if (request.running == nullptr) return call.fail({Code::not_found, 0, call.map_number()});
  }
  program::RunningCall& running = *request.running;
  if (!running.posts().empty()) return go_on_with_posts(call, request);
  if (!call.response_fits(served.call->row.reply_bytes_max)) return call.writable();
  if (request.over) return answer(call, running);
  if (served.call->row.runs_on == RunsOn::worker) {
    return running.step() ? answer(call, running) : go_on_with_posts(call, request);
  }
  return call.helper_steps_when_possible([&request](offload::StepContext& context) {
    while (!(request.over = request.running->step())) {
      if (!request.running->posts().empty()) return JobStep::done;
      if (context.should_return()) return JobStep::again;
    }
    return JobStep::done;
  });
}

Next answer_opened(Call& call, const TableResult<program::OwnCalls::Object>& object) {
  if (!object) return refuse(call, object.error());
  wire::ResponseHeader header{};
  header.version = (*object)->id();
  return call.answer(header);
}

Next create_object(Call& call) {
  const Served& served = served_by(call);
  return answer_opened(
      call, served.own->create(call.catalog(), *served.kind, call.key(), call.payload()));
}

Next open_object(Call& call) {
  return answer_opened(call,
                       program::OwnCalls::open(call.catalog(), *served_by(call).kind, call.key()));
}

wire::OffloadId id_of(std::uint8_t number) { return static_cast<wire::OffloadId>(number); }

offload::Offload row_of(const Served& served) {
  const OffloadRow& row = served.call->row;
  return {{.id = id_of(row.number),
           .name = row.name,
           .format = "payload: as the program says",
           .summary = row.summary,
           .right = static_cast<wire::Right>(row.right),
           .limits = {.payload_bytes_min = row.request_bytes_min,
                      .payload_bytes_max = row.request_bytes_max},
           .object = row.kind != ObjectKind::any ? wire::Names::by_id : wire::Names::nothing,
           .at_device = row.at_device == OffloadAtDevice::relayed ? wire::AtDevice::relayed
                                                                  : wire::AtDevice::refused,
           .changes = row.right != OffloadRight::read},
          {.step = serve_call,
           .executor = served.call->posts ? &offload::kPeerPosts : nullptr,
           .context = &served}};
}

offload::Offload opening_row(const Served& served, bool creates) {
  const KindRow& row = served.kind->kind.row;
  return {{.id = id_of(creates ? row.create_number : row.open_number),
           .name = served.name,
           .format = creates ? "key: the object's name; payload: what it is made of"
                             : "key: the object's name",
           .summary = served.summary,
           .right = creates ? wire::Right::admin : wire::Right::read,
           .limits = {.key_bytes_min = 1,
                      .key_bytes_max = wire::kObjectNameBytesMax,
                      .payload_bytes_max = creates ? row.form_bytes_max : 0},
           .object = wire::Names::by_name,
           .at_device = wire::AtDevice::relayed,
           .changes = creates,
           .opens = true},
          {.step = creates ? create_object : open_object, .context = &served}};
}

void make_node_store(offload::TypedSlots<offload::NodePart>& parts) { parts.make<NodeStore>(); }

}  // namespace

ProgramKinds::ProgramKinds(std::shared_ptr<const program::OwnCalls> own) : own_(std::move(own)) {
  const auto serve = [this](Served served) -> const Served& {
    return *served_.emplace_back(std::make_unique<Served>(std::move(served)));
  };
  for (const Offload& call : own_->calls()) {
    rows_.push_back(row_of(serve({.own = own_, .call = &call})));
  }
  for (const program::ServedKind& kind : own_->kinds()) {
    const auto named = [&](std::string_view act, std::string_view summary) -> const Served& {
      return serve({own_, nullptr, &kind, kind.name + std::string(act), std::string(summary)});
    };
    rows_.push_back(opening_row(named("_create", "makes an object; answers its number"), true));
    rows_.push_back(opening_row(named("_open", "answers an object's number"), false));
  }
  all_rows_ = rows_;
  kind_ = {.name = "program", .calls = {&all_rows_, 1}, .make_part = make_node_store};
}

}  // namespace espalier::node_api
