// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"encoding"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The document of the interface ([OpenAPI]) is made of the routes that a server has: an operation for each
// ([document.operation]), with every status that it may answer ([Route.statuses]) and the schema of its
// answer, which comes from the Go type ([document.schema]).

// openAPIPath is where a server shows the document of its routes.
const openAPIPath = "/openapi.json"

// jsonObject is an object of the document.
type jsonObject = map[string]any

// OpenAPI returns the description of routes in the form of OpenAPI 3.1, to be encoded as JSON.
func OpenAPI(routes []Route) any {
	d := document{schemas: jsonObject{}, names: map[reflect.Type]string{}}
	paths := jsonObject{}
	for _, route := range routes {
		at, _ := paths[route.Path].(jsonObject)
		if at == nil {
			at = jsonObject{}
			paths[route.Path] = at
		}
		at[strings.ToLower(route.method())] = d.operation(route)
	}
	return jsonObject{
		"openapi": "3.1.0",
		"info": jsonObject{
			"title": "Quorate node", "version": "1",
			"description": "What a node says of itself and of its cluster, and what operators ask of it.",
		},
		"paths": paths,
		"components": jsonObject{"schemas": d.schemas, "securitySchemes": jsonObject{
			"token":       jsonObject{"type": "http", "scheme": "bearer"},
			"certificate": jsonObject{"type": "mutualTLS"},
		}},
	}
}

// documented adds the route of the document to routes, unless there is one.
func documented(routes []Route) []Route {
	if slices.ContainsFunc(routes, func(r Route) bool { return r.Path == openAPIPath }) {
		return routes
	}
	all := append(slices.Clone(routes), Route{Path: openAPIPath, Summary: "This document", Result: jsonObject{}})
	about := OpenAPI(all)
	all[len(all)-1].Answer = func(context.Context, Request) (any, error) { return about, nil }
	return all
}

// document is a document while it is made.
type document struct {
	schemas jsonObject
	names   map[reflect.Type]string // Names of schemas.
}

// operation describes a route.
func (d *document) operation(r Route) jsonObject {
	parameters := []any{}
	for _, name := range wildcards(r.Path) {
		parameters = append(parameters, r.described(name, jsonObject{"name": name, "in": "path", "required": true, "schema": jsonObject{"type": "string"}}))
	}
	for _, name := range r.Query {
		schema := jsonObject{"type": "string"}
		if r.repeated {
			schema = jsonObject{"type": "array", "items": schema}
		}
		parameters = append(parameters, r.described(name, jsonObject{"name": name, "in": "query", "schema": schema}))
	}
	if r.Operation != "" {
		parameters = append(parameters, jsonObject{"name": OperatorHeader, "in": "header", "required": true, "schema": jsonObject{"const": r.Operation}})
	}
	responses := jsonObject{"200": d.success(r)}
	for _, status := range r.statuses() {
		responses[strconv.Itoa(status)] = jsonObject{
			"description": http.StatusText(status),
			"content":     jsonObject{"application/json": jsonObject{"schema": d.schema(reflect.TypeFor[Failure]())}},
		}
	}
	o := jsonObject{"operationId": operationID(r), "summary": r.Summary, "parameters": parameters, "responses": responses}
	if r.Authorized {
		o["security"] = []any{jsonObject{"token": []any{}}, jsonObject{"certificate": []any{}}, jsonObject{}} // The last is the socket.
	}
	if r.Body > 0 {
		o["requestBody"] = jsonObject{"content": jsonObject{"*/*": jsonObject{"schema": jsonObject{}}}}
	}
	return o
}

// success describes the answer of a route that succeeds.
func (d *document) success(r Route) jsonObject {
	text := jsonObject{"type": "string"}
	switch {
	case r.Stream != nil:
		return jsonObject{"description": "Events, until the client goes away", "content": jsonObject{"text/event-stream": jsonObject{"schema": text}}}
	case r.Handler != nil:
		return jsonObject{"description": "OK", "content": jsonObject{"*/*": jsonObject{"schema": text}}}
	}
	schema := jsonObject{}
	if r.Result != nil {
		schema = d.schema(reflect.TypeOf(r.Result))
	}
	return jsonObject{"description": "OK", "content": jsonObject{"application/json": jsonObject{"schema": schema}}}
}

// statuses returns the statuses of errors that a route may answer, sorted: those that any route may, those of what the
// route says of itself, and those that it names.
func (r Route) statuses() []int {
	all := []int{http.StatusBadRequest, http.StatusForbidden, http.StatusInternalServerError, http.StatusServiceUnavailable}
	add := func(when bool, statuses ...int) {
		if when {
			all = append(all, statuses...)
		}
	}
	add(r.Stream == nil, http.StatusGatewayTimeout)
	add(len(wildcards(r.Path)) > 0, http.StatusNotFound)
	add(r.Operation != "", http.StatusConflict)
	add(r.Authorized, http.StatusUnauthorized)
	add(r.Body > 0, http.StatusLengthRequired, http.StatusRequestEntityTooLarge)
	slices.Sort(all)
	return all
}

// described adds to a parameter what the route says about it.
func (r Route) described(name string, parameter jsonObject) jsonObject {
	if about := r.About[name]; about != "" {
		parameter["description"] = about
	}
	return parameter
}

// wildcards returns the names of the parts of a path that stand for others.
func wildcards(path string) (names []string) {
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			names = append(names, strings.TrimSuffix(strings.TrimSuffix(name, "}"), "..."))
		}
	}
	return names
}

// operationID names a route, for those who make code of the document.
func operationID(r Route) string {
	var id strings.Builder
	id.WriteString(strings.ToLower(r.method()))
	for part := range strings.FieldsFuncSeq(r.Path, func(c rune) bool { return strings.ContainsRune("/{}-.", c) }) {
		id.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return id.String()
}

// schema describes how values of a type are encoded. A struct with a name is described once.
func (d *document) schema(t reflect.Type) jsonObject {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return jsonObject{"type": "string", "format": "date-time"}
	case t.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()):
		return jsonObject{} // It alone knows.
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return jsonObject{"type": "string"}
	}
	switch t.Kind() { //nolint:exhaustive // What is not named cannot be encoded, or is an interface.
	case reflect.Bool:
		return jsonObject{"type": "boolean"}
	case reflect.String:
		return jsonObject{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return jsonObject{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return jsonObject{"type": "integer"}
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return jsonObject{"type": "string", "contentEncoding": "base64"}
		}
		return jsonObject{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return jsonObject{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		return d.named(t)
	}
	return jsonObject{} // An interface: anything.
}

// named describes a struct, by its name if it has one.
func (d *document) named(t reflect.Type) jsonObject {
	if t.Name() == "" {
		return d.object(t)
	}
	name, known := d.names[t]
	if !known {
		name = strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		for i := 2; d.schemas[name] != nil; i++ { // Types of two packages may have one name.
			name = strings.TrimRight(name, "0123456789") + strconv.Itoa(i)
		}
		d.names[t], d.schemas[name] = name, jsonObject{} // Known before its fields, among which it may be.
		d.schemas[name] = d.object(t)
	}
	return jsonObject{"$ref": "#/components/schemas/" + name}
}

// object describes the fields of a struct. Those that are always there are required, and there are no
// others; lists and objects that are absent may be null.
func (d *document) object(t reflect.Type) jsonObject {
	properties, required := jsonObject{}, []string{}
	d.fields(t, properties, &required)
	slices.Sort(required)
	return jsonObject{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// fields adds the fields of a struct, and of those that are embedded in it.
func (d *document) fields(t reflect.Type, properties jsonObject, required *[]string) {
	for f := range t.Fields() {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			d.fields(f.Type, properties, required)
			continue
		case name == "":
			name = f.Name
		}
		schema := d.schema(f.Type)
		if strings.Contains(rest, "omit") {
			properties[name] = schema
			continue
		}
		*required = append(*required, name)
		if kind := f.Type.Kind(); kind == reflect.Slice || kind == reflect.Map || kind == reflect.Pointer {
			schema = jsonObject{"oneOf": []any{schema, jsonObject{"type": "null"}}}
		}
		properties[name] = schema
	}
}
