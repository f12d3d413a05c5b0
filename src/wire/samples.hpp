// SPDX-License-Identifier: Apache-2.0
// Statistics of objects as labelled samples: each says its name, unit, help, labels and value, so
// that a program shows those of a kind of object that it does not know. docs/formats/samples.md
// draws them.
//
// object_samples answers with items, as a scan does: the key of each is an object's name, its
// version the object's id, and its value
//
//   0      1                 2         4          8
//   +------+-----------------+---------+----------+-------------+--------
//   | kind | kind name bytes | samples | reserved | kind's name | samples
//   +------+-----------------+---------+----------+-------------+--------
//
// Thread: plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "espalier/kind.hpp"
#include "wire/message.hpp"
#include "wire/object.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::wire {

/// Objects in one answer, at most.
inline constexpr std::uint32_t kSampledObjectsMax = 256;
/// Bytes of an answer, at most: objects that would make it longer are left out.
inline constexpr std::uint32_t kSamplesBytesMax = std::uint32_t{1} << 20;
/// Samples of one object, at most, and labels of one sample.
inline constexpr std::size_t kSamplesMax = 256;
inline constexpr std::size_t kSampleLabelsMax = 8;
/// Of the names of samples, labels and kinds, and of units.
inline constexpr std::size_t kSampleWordBytesMax = 63;
/// Of helps, and of labels' values.
inline constexpr std::size_t kSampleTextBytesMax = 255;

/// Of which objects the samples are wanted.
struct SamplesWanted {
  std::uint32_t objects_max;  // 1 to kSampledObjectsMax: those that take most memory
  std::uint8_t kind;          // ObjectKind; 0: any
  std::uint8_t reserved_byte;
  std::uint16_t reserved;
};
static_assert(sizeof(SamplesWanted) == 8 && offsetof(SamplesWanted, kind) == 4);
static_assert(std::has_unique_object_representations_v<SamplesWanted>);

/// Begins the value of an object's item.
struct SampledObjectEntry {
  std::uint8_t kind;  // ObjectKind
  std::uint8_t kind_name_bytes;
  std::uint16_t samples;
  std::uint32_t reserved;
};
static_assert(sizeof(SampledObjectEntry) == 8 && offsetof(SampledObjectEntry, samples) == 2);
static_assert(std::has_unique_object_representations_v<SampledObjectEntry>);

enum class SampleType : std::uint8_t {
  invalid = 0,
  counter = 1,  ///< only rises while its object lives
  gauge = 2,    ///< rises and falls
};
/// Whether this version knows what it is.
[[nodiscard]] constexpr bool is_known(SampleType type) {
  return type == SampleType::counter || type == SampleType::gauge;
}

/// One sample; its name, unit and help follow, and then its labels.
struct SampleEntry {
  std::uint64_t value;
  std::uint8_t type;  // SampleType
  std::uint8_t labels;
  std::uint8_t name_bytes;
  std::uint8_t unit_bytes;
  std::uint16_t help_bytes;
  std::uint16_t reserved;
};
static_assert(sizeof(SampleEntry) == 16 && offsetof(SampleEntry, help_bytes) == 12);
static_assert(std::has_unique_object_representations_v<SampleEntry>);

/// One label; its name and value follow.
struct SampleLabelEntry {
  std::uint16_t value_bytes;
  std::uint8_t name_bytes;
  std::uint8_t reserved;
};
static_assert(sizeof(SampleLabelEntry) == 4 && offsetof(SampleLabelEntry, name_bytes) == 2);
static_assert(std::has_unique_object_representations_v<SampleLabelEntry>);

// --- as programs have them -----------------------------------------------------------------------

struct SampleLabel {
  std::string name;
  std::string value;  ///< any bytes
  friend bool operator==(const SampleLabel&, const SampleLabel&) = default;
};

struct Sample {
  std::string name;  ///< where there is a unit, it ends with it: "queued_bytes"
  std::string unit;  ///< "bytes"; empty: it is a count, or has none
  std::string help;  ///< a sentence for people; any bytes
  SampleType type = SampleType::invalid;
  std::vector<SampleLabel> labels;
  std::uint64_t value = 0;
  friend bool operator==(const Sample&, const Sample&) = default;
};

struct SampledObject {
  ObjectKind kind = ObjectKind::any;
  std::string kind_name;  ///< empty: it has none but its number
  std::uint32_t id = 0;
  std::string name;  ///< any bytes
  std::vector<Sample> samples;
  friend bool operator==(const SampledObject&, const SampledObject&) = default;
};

/// The first sample of this name. Null: it has none.
[[nodiscard]] inline const Sample* find_sample(const SampledObject& object, std::string_view name) {
  const auto found = std::ranges::find(object.samples, name, &Sample::name);
  return found == object.samples.end() ? nullptr : &*found;
}
/// Its value; 0: there is none.
[[nodiscard]] inline std::uint64_t sample_value(const SampledObject& object,
                                                std::string_view name) {
  const Sample* const found = find_sample(object, name);
  return found == nullptr ? 0 : found->value;
}

struct SampledObjects {
  std::uint64_t count = 0;             ///< matching objects, returned or not
  std::vector<SampledObject> objects;  ///< those that take most memory first

  [[nodiscard]] std::uint64_t left_out() const {
    return count > objects.size() ? count - objects.size() : 0;
  }
};

/// The kind as a word of metrics, in text that is read by programs: "map", or "kind_200" for one
/// without a name.
[[nodiscard]] inline std::string kind_word(const SampledObject& object) {
  if (!object.kind_name.empty()) return object.kind_name;
  return "kind_" + std::to_string(static_cast<int>(object.kind));
}

// --- what is a sample ----------------------------------------------------------------------------

/// Small letters, digits and underscores, with a letter first: a name wherever metrics are read.
[[nodiscard]] inline bool is_sample_word(std::string_view word) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  if (word.empty() || word.size() > kSampleWordBytesMax || !is_letter(word.front())) return false;
  return std::ranges::all_of(
      word, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

/// Whether a name ends with its unit, or there is none.
[[nodiscard]] inline bool ends_with_unit(std::string_view name, std::string_view unit) {
  if (unit.empty() || name == unit) return true;
  return is_sample_word(unit) && name.ends_with(unit) && name[name.size() - unit.size() - 1] == '_';
}

/// Whether metrics would take it for the name of a series of theirs: they append "_total" to the
/// names of counters, and the others to those of histograms.
[[nodiscard]] inline bool is_name_of_metrics(std::string_view name) {
  constexpr std::string_view kEnds[] = {"_total", "_count", "_sum", "_bucket"};
  return std::ranges::any_of(
      kEnds, [&](std::string_view end) { return name.ends_with(end) || name == end.substr(1); });
}

/// Whether a sample has such a label. Names that end with "_hex" are those under which JSON has
/// values that are not text.
[[nodiscard]] inline bool is_label_name(std::string_view name, std::string_view kind_word) {
  return is_sample_word(name) && name != kind_word && !name.ends_with("_hex");
}

/// Whether a sample can be sent. `kind_word`: of its object, which labels do not take for a name,
/// for metrics have the object's name under it.
[[nodiscard]] inline bool is_good(const Sample& sample, std::string_view kind_word) {
  if (!is_known(sample.type)) return false;
  if (!is_sample_word(sample.name) || !ends_with_unit(sample.name, sample.unit)) return false;
  if (is_name_of_metrics(sample.name)) return false;
  if (sample.help.size() > kSampleTextBytesMax || sample.labels.size() > kSampleLabelsMax) {
    return false;
  }
  for (auto label = sample.labels.begin(); label != sample.labels.end(); ++label) {
    if (!is_label_name(label->name, kind_word)) return false;
    if (label->value.size() > kSampleTextBytesMax) return false;
    const auto same = [&](const SampleLabel& other) { return other.name == label->name; };
    if (std::any_of(sample.labels.begin(), label, same)) return false;
  }
  return true;
}

[[nodiscard]] inline bool is_good(const SampledObject& object) {
  if (!object.kind_name.empty() && !is_sample_word(object.kind_name)) return false;
  const std::string word = kind_word(object);
  return object.samples.size() <= kSamplesMax &&
         std::ranges::all_of(object.samples, [&](auto& of) { return is_good(of, word); });
}

// --- as they travel ------------------------------------------------------------------------------

inline void append(std::string& bytes, const Sample& sample) {
  SampleEntry entry{};
  entry.value = sample.value;
  entry.type = static_cast<std::uint8_t>(sample.type);
  entry.labels = static_cast<std::uint8_t>(sample.labels.size());
  entry.name_bytes = static_cast<std::uint8_t>(sample.name.size());
  entry.unit_bytes = static_cast<std::uint8_t>(sample.unit.size());
  entry.help_bytes = static_cast<std::uint16_t>(sample.help.size());
  bytes.append(base::bytes_of(entry)).append(sample.name);
  bytes.append(sample.unit).append(sample.help);
  for (const SampleLabel& label : sample.labels) {
    SampleLabelEntry head{};
    head.value_bytes = static_cast<std::uint16_t>(label.value.size());
    head.name_bytes = static_cast<std::uint8_t>(label.name.size());
    bytes.append(base::bytes_of(head)).append(label.name).append(label.value);
  }
}

/// Its item. Requires: is_good(object), and a name that objects have.
[[nodiscard]] inline std::string item_of(const SampledObject& object) {
  SampledObjectEntry entry{};
  entry.kind = static_cast<std::uint8_t>(object.kind);
  entry.kind_name_bytes = static_cast<std::uint8_t>(object.kind_name.size());
  entry.samples = static_cast<std::uint16_t>(object.samples.size());
  std::string value(base::bytes_of(entry));
  value += object.kind_name;
  for (const Sample& sample : object.samples) append(value, sample);
  std::string item(base::bytes_of(item_header(object.id, object.name.size(), value.size())));
  return item.append(object.name).append(value);
}

/// The items of these objects. Requires: each is_good(), and together they fit into an answer.
[[nodiscard]] inline std::string items_of(const std::vector<SampledObject>& objects) {
  std::string items;
  for (const SampledObject& object : objects) items += item_of(object);
  return items;
}

/// Reads one off the front; the reader remembers if it was too short. None: it is no sample. Of a
/// sample whose type is not is_known() only the lengths are checked.
[[nodiscard]] inline std::optional<Sample> take_sample(PayloadReader& reader,
                                                       std::string_view kind_word) {
  const auto entry = reader.take<SampleEntry>();
  Sample sample;
  sample.type = static_cast<SampleType>(entry.type);
  sample.value = entry.value;
  sample.name = reader.text(entry.name_bytes);
  sample.unit = reader.text(entry.unit_bytes);
  sample.help = reader.text(entry.help_bytes);
  bool reserved = entry.reserved != 0;
  for (std::uint8_t i = 0; i < entry.labels; ++i) {
    const auto head = reader.take<SampleLabelEntry>();
    reserved = reserved || head.reserved != 0;
    std::string name(reader.text(head.name_bytes));
    sample.labels.push_back({std::move(name), std::string(reader.text(head.value_bytes))});
  }
  if (!reader.good() || sample.type == SampleType::invalid) return std::nullopt;
  if (!is_known(sample.type)) return sample;
  if (reserved || !is_good(sample, kind_word)) return std::nullopt;
  return sample;
}

/// Reads an object off the front, without its samples of types that only later versions know; the
/// reader remembers if it was too short. None: it is no such item.
[[nodiscard]] inline std::optional<SampledObject> take_sampled_object(PayloadReader& reader) {
  const auto item = reader.take<ItemHeader>();
  SampledObject object;
  object.name = reader.text(item.key_bytes);
  PayloadReader value(reader.text(item.value_bytes));
  const auto entry = value.take<SampledObjectEntry>();
  object.kind = static_cast<ObjectKind>(entry.kind);
  object.kind_name = value.text(entry.kind_name_bytes);
  object.id = static_cast<std::uint32_t>(item.version);
  if (item.reserved != 0 || item.version > std::numeric_limits<std::uint32_t>::max() ||
      object.name.empty() || object.name.size() > kObjectNameBytesMax || entry.kind == 0 ||
      entry.reserved != 0 || entry.samples > kSamplesMax ||
      (!object.kind_name.empty() && !is_sample_word(object.kind_name))) {
    return std::nullopt;
  }
  const std::string word = kind_word(object);
  for (std::uint16_t i = 0; i < entry.samples; ++i) {
    auto sample = take_sample(value, word);
    if (!sample) return std::nullopt;
    if (!is_known(sample->type)) continue;
    object.samples.push_back(*std::move(sample));
  }
  if (!reader.good() || !value.complete()) return std::nullopt;
  return object;
}

/// All objects of an answer. Of any bytes. None: they are no such items, or too many.
[[nodiscard]] inline std::optional<std::vector<SampledObject>> read_sampled_objects(
    std::string_view items) {
  if (items.size() > kSamplesBytesMax) return std::nullopt;
  std::vector<SampledObject> objects;
  PayloadReader reader(items);
  while (!reader.rest().empty()) {
    auto object = take_sampled_object(reader);
    if (!object || objects.size() == kSampledObjectsMax) return std::nullopt;
    objects.push_back(*std::move(object));
  }
  return objects;
}

}  // namespace espalier::wire
