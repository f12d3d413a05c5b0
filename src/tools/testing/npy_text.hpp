// SPDX-License-Identifier: Apache-2.0
// For tests: the bytes of a NumPy file.
#pragma once

#include <string>
#include <vector>

namespace espalier::tools {

/// A matrix of so many columns, as numpy.save() writes it.
inline std::string npy_text(const std::vector<float>& values, std::size_t columns,
                            int version = 1) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(values.size() / columns) + ", " + std::to_string(columns) +
                       "), }";
  const std::size_t front = version == 1 ? 10 : 12;
  header.resize((front + header.size() + 64) / 64 * 64 - front - 1, ' ');
  header += '\n';
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  for (std::size_t i = 0; i < front - 8; ++i) {
    text += static_cast<char>(header.size() >> 8 * i & 0xFF);
  }
  text += header;
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return text;
}

}  // namespace espalier::tools
