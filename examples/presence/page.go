// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed" // The page is part of the program.
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// page is the whole page: it loads nothing.
//
//go:embed page.html
var page []byte

const (
	// nameBytes bounds a name.
	nameBytes = 64
	// pulse is how often a stream says something though nothing has changed, so that a
	// connection that is gone is noticed, and how exactly the seen keys tell when a name was
	// last seen if its node is killed.
	pulse = 20 * time.Second
)

// boards is what the page needs of a presence.
type boards interface {
	look() (pageContent, <-chan struct{})
	join(name string) (leave func())
	note(name string)
}

// routes serves the page, the board as it is now, and the stream of boards. Who reads the
// stream under a name is online.
func routes(p boards) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'")
		_, _ = w.Write(page) // The reader is gone; nothing is to be done.
	})
	mux.HandleFunc("GET /board", func(w http.ResponseWriter, _ *http.Request) {
		b, _ := p.look()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(b) // As above.
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimSpace(r.URL.Query().Get("name"))
		if err := checkName(name); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if name != "" {
			defer p.join(name)()
		}
		stream(w, r, p, name)
	})
	return mux
}

// checkName refuses names that no page could show. Nobody is the empty name: a reader of the
// stream who is not online.
func checkName(name string) error {
	switch {
	case len(name) > nameBytes:
		return fmt.Errorf("the name has %d bytes, at most %d are allowed", len(name), nameBytes)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the name %q has characters that cannot be shown", name)
	default:
		return nil
	}
}

// stream sends the board, and another one whenever it has changed, as server-sent events,
// until the reader goes.
func stream(w http.ResponseWriter, r *http.Request, p boards, name string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	for {
		b, news := p.look()
		text, err := json.Marshal(b)
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", text)
		}
		if err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-news:
		case <-ticker.C:
			if name != "" {
				p.note(name)
			}
		}
	}
}
