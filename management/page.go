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

// pagePolicy lets the page load its own parts and ask this node, and nothing else: no script in it that was not
// built into it, no other server, no frame around it.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// pageRoutes returns the routes of the page, if it is to be there.
func pageRoutes(cfg Config) []Route {
	if !cfg.Page {
		return nil
	}
	return []Route{
		{Path: pagePath, Handler: pagePart("page/index.html", "text/html")},
		{Path: pagePath + "/app.js", Handler: pagePart("page/dist/app.js", "text/javascript")},
		{Path: pagePath + "/app.css", Handler: pagePart("page/dist/app.css", "text/css")},
		{Path: pagePath + "/licences.txt", Handler: pagePart("page/dist/licences.txt", "text/plain")},
	}
}

// pagePart answers with a file of the page.
func pagePart(file, kind string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := pageFiles.ReadFile(file)
		if err != nil { // It is built in.
			http.NotFound(w, r)
			return
		}
		header := w.Header()
		for name, value := range map[string]string{
			"Content-Type": kind + "; charset=utf-8", "Content-Length": strconv.Itoa(len(content)),
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
