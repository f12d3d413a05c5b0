// SPDX-License-Identifier: Apache-2.0
// A store's calls and objects that a program has defined: the calling thread executes those of this
// process, and the node those of a node.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.hpp"
#include "channel/objects.hpp"
#include "channel/public_call.hpp"
#include "client/store_impl.hpp"
#include "espalier/offload.hpp"
#include "kinds/program/own_calls.hpp"
#include "kinds/program/running_call.hpp"

namespace espalier {

using client::call;
using client::StoreImpl;

namespace {

/// The object of a call, on a node or in this process; none: no object.
struct OnObject {
  channel::NodeNumber node = 0;
  std::uint32_t number = 0;
};

/// Lends the store to the function that executes the call.
class LentStore final : public program::StoreSource {
 public:
  explicit LentStore(StoreImpl& store) : store_(store) {}
  [[nodiscard]] std::shared_ptr<Store> store() const override {
    const auto lent = std::make_shared<Lent>(store_);
    return {lent, &lent->store};
  }

 private:
  struct Lent {
    explicit Lent(StoreImpl& impl) : store(StoreImpl::handle(std::unique_ptr<StoreImpl>(&impl))) {}
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() { StoreImpl::leave(store); }
    Store store;
  };
  StoreImpl& store_;
};

TableError refusal(Code code, std::size_t detail = 0) {
  return {{code, 0, static_cast<std::uint32_t>(detail)}, {}};
}

/// Checks the request before it is sent. None: valid.
std::optional<TableError> wrong_with(const OffloadRow& row, ObjectKind kind,
                                     std::string_view request) {
  if (row.number < kOwnCalls || row.kind != kind) {
    return refusal(Code::invalid_argument, row.number);
  }
  if (!program::fits(row, request)) return refusal(Code::invalid_argument, request.size());
  return std::nullopt;
}

TableResult<std::string> carry_out(StoreImpl& store, const OffloadRow& row, OnObject on,
                                   std::string_view request) {
  const program::OwnCalls* const own = store.own_calls();
  const Offload* const offload = own != nullptr ? own->find(row.number) : nullptr;
  if (offload == nullptr) return std::unexpected(refusal(Code::unsupported, row.number));
  if (auto wrong = wrong_with(offload->row, row.kind, request)) {
    return std::unexpected(*std::move(wrong));
  }
  program::OwnCalls::Object object;
  if (row.kind != ObjectKind::any) {
    object = program::OwnCalls::find(*store.channel()->own_objects(), row.kind, on.number);
    if (object == nullptr) return std::unexpected(refusal(Code::not_found, on.number));
  }
  const LentStore source(store);
  program::RunningCall running(*own, *offload, request, std::move(object), {.name = "this process"},
                               source);
  while (!running.step()) {
  }
  if (running.error()) return std::unexpected(*running.error());
  return std::move(running.reply());
}

TableResult<std::string> ask_node(channel::Channel& channel, const OffloadRow& row, OnObject on,
                                  std::string_view request) {
  const wire::CallMessage message{
      .offload = static_cast<wire::OffloadId>(row.number), .map = on.number, .payload = request};
  const auto node = on.number != 0 ? std::optional(on.node) : std::nullopt;
  auto answer = channel.ask(message, node);
  if (!answer && row.idempotent && answer.error().error.code == Code::connection_lost) {
    answer = channel.ask(message, node);
  }
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (answer->reply.payload.size() > row.reply_bytes_max) {
    return std::unexpected(refusal(Code::corrupt));
  }
  return std::move(answer->reply.payload);
}

TableResult<std::string> ask_for(StoreImpl& store, const OffloadRow& row, ObjectKind kind,
                                 OnObject on, std::string_view request) {
  return call(store, [&]() -> TableResult<std::string> {
    if (auto wrong = wrong_with(row, kind, request)) return std::unexpected(*std::move(wrong));
    const auto channel = store.channel();
    if (channel->own_objects() != nullptr) return carry_out(store, row, on, request);
    return ask_node(*channel, row, on, request);
  });
}

/// The number of an object that this process creates or opens.
TableResult<OnObject> obtain_own(StoreImpl& store, const KindRow& row, std::string_view name,
                                 const std::string_view* form) {
  const program::OwnCalls* const own = store.own_calls();
  const program::ServedKind* const kind = own != nullptr ? own->find(row.number) : nullptr;
  if (kind == nullptr) return std::unexpected(refusal(Code::unsupported, row.create_number));
  catalog::Catalog& objects = *store.channel()->own_objects();
  const auto object = form != nullptr ? own->create(objects, *kind, name, *form)
                                      : program::OwnCalls::open(objects, *kind, name);
  if (!object) return std::unexpected(object.error());
  return OnObject{0, (*object)->id()};
}

/// Decodes the answer of a call that opens an object. Errors: corrupt.
TableResult<OnObject> opened(const channel::Answer& answer) {
  const std::uint64_t number = answer.reply.header.version;
  if (number == 0 || number > ~std::uint32_t{0} || !answer.reply.payload.empty()) {
    return std::unexpected(refusal(Code::corrupt));
  }
  return OnObject{answer.node, static_cast<std::uint32_t>(number)};
}

TableResult<OnObject> create_on_node(channel::Channel& channel, const KindRow& row,
                                     std::string_view name, std::string_view form) {
  const wire::CallMessage message{
      .offload = static_cast<wire::OffloadId>(row.create_number), .key = name, .payload = form};
  TableResult<OnObject> made = std::unexpected(refusal(Code::corrupt));
  const auto take = [&made](channel::Answer&& answer) { made = opened(answer); };
  const auto asked = channel::make_object(channel, message, name, row.number, take);
  if (!asked) return std::unexpected(asked.error());
  return made;
}

TableResult<OnObject> open_on_node(channel::Channel& channel, const KindRow& row,
                                   std::string_view name) {
  const auto answer =
      channel.ask({.offload = static_cast<wire::OffloadId>(row.open_number), .key = name});
  if (!answer) return std::unexpected(answer.error());
  return opened(*answer);
}

bool is_own(const KindRow& row) {
  return static_cast<std::uint8_t>(row.number) >= kOwnKinds && row.create_number >= kOwnCalls &&
         row.open_number >= kOwnCalls;
}

}  // namespace

TableResult<std::string> Store::call(const OffloadRow& row, std::string_view request) {
  return ask_for(*impl_, row, ObjectKind::any, {}, request);
}

TableResult<std::string> ObjectHandle::call(const OffloadRow& row, std::string_view request) const {
  if (kind_ == ObjectKind::any) return std::unexpected(refusal(Code::invalid_argument));
  return ask_for(*store_, row, kind_, {node_, number_}, request);
}

TableResult<ObjectHandle> Store::create_object(const KindRow& kind, std::string_view name,
                                               std::string_view form) {
  return client::call(*impl_, [&]() -> TableResult<ObjectHandle> {
    if (!is_own(kind) || !catalog::Catalog::is_name(name) || form.size() > kind.form_bytes_max) {
      return std::unexpected(refusal(Code::invalid_argument));
    }
    std::string own_name(name);
    const auto channel = impl_->channel();
    const auto made = channel->own_objects() != nullptr
                          ? obtain_own(*impl_, kind, name, &form)
                          : create_on_node(*channel, kind, name, form);
    if (!made) return std::unexpected(made.error());
    return ObjectHandle(impl_.get(), std::move(own_name), kind.number, made->node, made->number);
  });
}

TableResult<ObjectHandle> Store::open_object(const KindRow& kind, std::string_view name) const {
  return client::call(*impl_, [&]() -> TableResult<ObjectHandle> {
    if (!is_own(kind)) return std::unexpected(refusal(Code::invalid_argument));
    if (!catalog::Catalog::is_name(name)) return std::unexpected(refusal(Code::not_found));
    const auto channel = impl_->channel();
    const auto found = channel->own_objects() != nullptr ? obtain_own(*impl_, kind, name, nullptr)
                                                         : open_on_node(*channel, kind, name);
    if (!found) return std::unexpected(found.error());
    return ObjectHandle(impl_.get(), std::string(name), kind.number, found->node, found->number);
  });
}

Result<void> Store::drop_object(const KindRow& kind, std::string_view name) {
  if (!is_own(kind) || !catalog::Catalog::is_name(name)) return fail(Code::not_found);
  return client::call(*impl_, [&] { return channel::drop(*impl_->channel(), name, kind.number); });
}

Result<std::vector<std::string>> Store::object_names(const KindRow& kind) const {
  return client::call(*impl_, [&]() -> Result<std::vector<std::string>> {
    if (!is_own(kind)) return fail(Code::invalid_argument);
    auto objects = channel::list(*impl_->channel(), kind.number);
    if (!objects) return std::unexpected(objects.error());
    std::vector<std::string> names;
    for (channel::ListedObject& object : *objects) names.push_back(std::move(object.name));
    return names;
  });
}

}  // namespace espalier
