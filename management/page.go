// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"embed"
	"net/http"
	"strconv"
)

// The page for people: what a browser shows of the answers of this node, live. It is built from page/src, and
// holds no answers itself: it asks the routes beside it, as its user may.

// pagePath is where the page is; its parts are below it.
const pagePath = "/ui"

// pageFiles are the parts of the page. Those in dist are built, see page/README.md.
//
//go:embed page/index.html page/dist/app.js page/dist/app.css page/dist/licences.txt
var pageFiles embed.FS

// pageParts are the paths of the parts, with what they are.
func pageParts() map[string][2]string {
	return map[string][2]string{
		pagePath:                   {"page/index.html", "text/html; charset=utf-8"},
		pagePath + "/app.js":       {"page/dist/app.js", "text/javascript; charset=utf-8"},
		pagePath + "/app.css":      {"page/dist/app.css", "text/css; charset=utf-8"},
		pagePath + "/licences.txt": {"page/dist/licences.txt", "text/plain; charset=utf-8"},
	}
}

// pagePolicy lets the page load its own parts and ask this node, and nothing else: no script in it that was not
// built into it, no other server, no frame around it.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// pageRoutes returns the routes of the page, if it is to be there.
func pageRoutes(cfg Config) []Route {
	if !cfg.Page {
		return nil
	}
	var routes []Route
	for _, path := range []string{pagePath, pagePath + "/app.js", pagePath + "/app.css", pagePath + "/licences.txt"} {
		routes = append(routes, Route{Path: path, Handler: pagePart(path)})
	}
	return routes
}

// pagePart answers with a part of the page.
func pagePart(path string) http.Handler {
	part := pageParts()[path]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := pageFiles.ReadFile(part[0])
		if err != nil { // It is built in.
			http.NotFound(w, r)
			return
		}
		header := w.Header()
		for name, value := range map[string]string{
			"Content-Type": part[1], "Content-Length": strconv.Itoa(len(content)),
			"Content-Security-Policy": pagePolicy, "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			header.Set(name, value)
		}
		if r.Method != http.MethodHead {
			_, _ = w.Write(content) // Who has gone away does not need it.
		}
	})
}
