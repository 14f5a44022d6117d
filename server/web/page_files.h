// The files of the page, put into the program by embed.cmake.
#ifndef MENDEL_SERVER_WEB_PAGE_FILES_H_
#define MENDEL_SERVER_WEB_PAGE_FILES_H_

#include <string_view>

namespace mendel::server {

struct PageFile {
  std::string_view path;  ///< "/app.js"; "/" for index.html
  std::string_view type;
  std::string_view text;
};

/// The file at exactly this path, or null.
const PageFile* FindPageFile(std::string_view path);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_WEB_PAGE_FILES_H_
