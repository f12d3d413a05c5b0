// SPDX-License-Identifier: Apache-2.0
#include "tools/audit_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/places.hpp"
#include "engine/access.hpp"

namespace espalier::tools {
namespace {

bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

void append_quoted(std::string& line, std::string_view text) {
  line += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  line += '"';
}

void append_field(std::string& line, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  line += ' ';
  line += key;
  line += '=';
  if (std::ranges::all_of(value, is_word_byte)) {
    line += value;
  } else {
    append_quoted(line, value);
  }
}

/// What the detail of not_permitted says.
std::string_view reason_of(std::uint32_t detail) {
  constexpr std::string_view kReasons[] = {"other_names", "takes_read", "takes_write",
                                           "takes_admin", "no_proof",   "wrong_proof"};
  if (detail == static_cast<std::uint32_t>(offload::Right::peer)) return "takes_peer";
  if (detail == static_cast<std::uint32_t>(offload::Right::replica)) return "takes_replica";
  return detail < std::size(kReasons) ? kReasons[detail] : "";
}

}  // namespace

std::string audit_line(const offload::AuditRecord& record) {
  std::string line = "audit";
  if (record.act.empty()) return line + fmt::format(" left_out={}", record.left_out);
  append_field(line, "act", record.act);
  const Code code = record.outcome.code;
  append_field(line, "outcome", code == Code::invalid ? "done" : name(code));
  if (code == Code::not_permitted) {
    append_field(line, "reason", reason_of(record.outcome.detail));
  } else if (code == Code::too_many_participants) {
    append_field(line, "reason", base::name(base::places_of(record.outcome)));
    const std::uint32_t most = base::places_max_of(record.outcome);
    if (most != 0) line += fmt::format(" detail={}", most);
  } else if (code != Code::invalid && record.outcome.detail != 0) {
    line += fmt::format(" detail={}", record.outcome.detail);
  }
  append_field(line, "name", record.name);
  append_field(line, "role", offload::name(record.role));
  append_field(line, "via", record.via);
  append_field(line, "from", record.address);
  append_field(line, "object", record.object);
  append_field(line, "to", record.to);
  if (record.left_out != 0) line += fmt::format(" left_out={}", record.left_out);
  return line;
}

}  // namespace espalier::tools
