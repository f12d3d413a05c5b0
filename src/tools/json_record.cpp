// SPDX-License-Identifier: Apache-2.0
#include "tools/json_record.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/utf8.hpp"
#include "cmdline/text_codec.hpp"

namespace espalier::tools {
namespace {

using Json = nlohmann::json;

/// Reads member `name` or `name`_hex. Absent is fine where it is not required.
std::optional<std::string> read_bytes(const Json& object, const std::string& name, bool required,
                                      std::string& out) {
  out.clear();
  const auto text = object.find(name);
  const auto hex = object.find(name + "_hex");
  if (text != object.end() && hex != object.end()) {
    return fmt::format("has both \"{0}\" and \"{0}_hex\"", name);
  }
  if (text == object.end() && hex == object.end()) {
    if (required) return fmt::format("has no \"{}\"", name);
    return std::nullopt;
  }
  const Json& member = text != object.end() ? *text : *hex;
  if (!member.is_string()) return fmt::format("\"{}\" is not a string", name);
  const auto& bytes = member.get_ref<const std::string&>();
  return decode_to(out, bytes,
                   text != object.end() ? cmdline::Encoding::raw : cmdline::Encoding::hex);
}

}  // namespace

void set_bytes(nlohmann::ordered_json& object, std::string_view name, std::string_view bytes) {
  if (base::is_utf8(bytes)) {
    object[std::string(name)] = bytes;
  } else {
    object[std::string(name) + "_hex"] = encode(bytes, cmdline::Encoding::hex);
  }
}

void append_json_record(std::string& out, std::string_view key, std::string_view value) {
  nlohmann::ordered_json object;
  set_bytes(object, "key", key);
  set_bytes(object, "value", value);
  out += object.dump();
}

std::optional<std::string> parse_json_record(std::string_view line, std::string& key,
                                             std::string& value) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return "is not valid JSON";
  if (!object.is_object()) return "is JSON, but not an object";
  if (auto wrong = read_bytes(object, "key", true, key)) return wrong;
  return read_bytes(object, "value", false, value);
}

}  // namespace espalier::tools
