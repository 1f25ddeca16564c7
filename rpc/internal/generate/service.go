// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strconv"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/descriptorpb"
)

// writer writes the code of one service.
type writer struct {
	*protogen.GeneratedFile

	service *protogen.Service
	params  params
}

// doc writes the first sentence of a comment, and below it what the .proto file says.
func (w writer) doc(indent, first string, comments protogen.CommentSet, deprecated bool, kind string) {
	w.P(indent, "// ", first)
	for i, line := range comment(comments.Leading) {
		if i == 0 {
			w.P(indent, "//")
		}
		w.P(indent, "//", line)
	}
	if deprecated {
		w.P(indent, "//")
		w.P(indent, "// Deprecated: the ", kind, " is marked as deprecated.")
	}
}

func (w writer) deprecatedService() bool {
	options, ok := w.service.Desc.Options().(*descriptorpb.ServiceOptions)
	return ok && options.GetDeprecated()
}

func deprecatedMethod(m *protogen.Method) bool {
	options, ok := m.Desc.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetDeprecated()
}

// client writes the client.
func (w writer) client() {
	name, p := w.service.GoName, w.params
	caller := w.QualifiedGoIdent(rpcPackage.Ident("Caller"))
	w.doc("", name+" asks and tells the entities of the service "+string(w.service.Desc.FullName())+". It may be used from any goroutine.", w.service.Comments, w.deprecatedService(), "service")
	w.P("type ", name, " struct{ caller ", caller, " }")
	w.P()
	w.P("// New", name, " returns a client that reaches the entities by a caller.")
	w.P("func New", name, "(caller ", caller, ") *", name, " { return &", name, "{caller} }")
	w.P()
	for _, m := range w.service.Methods {
		ctx := w.QualifiedGoIdent(contextPackage.Ident("Context"))
		if oneWay(m) {
			w.doc("", m.GoName+" tells the entity with an id, and returns when the call is accepted. See [rpc.Tell] for the error.", m.Comments, deprecatedMethod(m), "rpc")
			w.P("func (", p.client, " *", name, ") ", m.GoName, "(", p.ctx, " ", ctx, ", ", p.id, " string, ", p.m, " *", m.Input.GoIdent, ") error {")
			w.P("return ", rpcPackage.Ident("Tell"), "(", p.ctx, ", ", p.client, ".caller, ", p.id, ", ", strconv.Quote(string(m.Desc.Name())), ", ", p.m, ")")
		} else {
			w.doc("", m.GoName+" asks the entity with an id, and waits for its reply. See [rpc.Ask] for the error.", m.Comments, deprecatedMethod(m), "rpc")
			w.P("func (", p.client, " *", name, ") ", m.GoName, "(", p.ctx, " ", ctx, ", ", p.id, " string, ", p.m, " *", m.Input.GoIdent, ") (*", m.Output.GoIdent, ", error) {")
			w.P("return ", rpcPackage.Ident("Ask"), "[", m.Output.GoIdent, "](", p.ctx, ", ", p.client, ".caller, ", p.id, ", ", strconv.Quote(string(m.Desc.Name())), ", ", p.m, ")")
		}
		w.P("}")
		w.P()
	}
}

// entity writes the interface of the entity.
func (w writer) entity() {
	name := w.service.GoName
	w.doc("", name+"Entity is an entity of the service "+string(w.service.Desc.FullName())+", with contexts of type C: *sharding.Context, or"+
		"\n// *state.Context[T] for one whose state is saved. Its methods are called by one goroutine at a"+
		"\n// time. A method refuses a call by an error that is a [rpc.Fault]; any other error means that the"+
		"\n// entity is not usable any more.", w.service.Comments, w.deprecatedService(), "service")
	w.P("type ", name, "Entity[C any] interface {")
	for i, m := range w.service.Methods {
		if i > 0 {
			w.P()
		}
		w.doc("\t", m.GoName+" handles a call.", m.Comments, deprecatedMethod(m), "rpc")
		w.P("\t", w.signature(m))
	}
	w.P("}")
	w.P()
}

// signature is a method of the entity.
func (w writer) signature(m *protogen.Method) string {
	p := w.params
	in := m.GoName + "(" + p.c + " C, " + p.m + " *" + w.QualifiedGoIdent(m.Input.GoIdent) + ")"
	if oneWay(m) {
		return in + " error"
	}
	return in + " (*" + w.QualifiedGoIdent(m.Output.GoIdent) + ", error)"
}

// unimplemented writes the type that entities embed, so that they go on to compile when the service
// has a method more.
func (w writer) unimplemented() {
	name := "Unimplemented" + w.service.GoName + "Entity"
	refuse := w.QualifiedGoIdent(rpcPackage.Ident("Unimplemented"))
	w.P("// ", name, " refuses each call as a method that the entity does not know. An entity that embeds it goes on to")
	w.P("// compile when the service has got another method. One-way calls are logged and ignored.")
	w.P("type ", name, "[C any] struct{}")
	w.P()
	for _, m := range w.service.Methods {
		w.P("// ", m.GoName, " refuses the call.")
		in := w.QualifiedGoIdent(m.Input.GoIdent)
		if oneWay(m) {
			w.P("func (", name, "[C]) ", m.GoName, "(C, *", in, ") error {")
			w.P(w.QualifiedGoIdent(rpcPackage.Ident("Ignored")), "(", strconv.Quote(string(w.service.Desc.FullName())), ", ", strconv.Quote(string(m.Desc.Name())), ")")
			w.P("return nil")
		} else {
			w.P("func (", name, "[C]) ", m.GoName, "(C, *", in, ") (*", w.QualifiedGoIdent(m.Output.GoIdent), ", error) {")
			w.P("return nil, ", refuse, "(", strconv.Quote(string(w.service.Desc.FullName())), ", ", strconv.Quote(string(m.Desc.Name())), ")")
		}
		w.P("}")
		w.P()
	}
}

// table writes the service.
func (w writer) table() {
	name := w.service.GoName
	w.P("// ", name, "Service returns what entities of the service can be called for, with contexts of type C.")
	w.P("func ", name, "Service[C any]() ", rpcPackage.Ident("Service"), "[", name, "Entity[C], C] {")
	w.P("return ", rpcPackage.Ident("NewService"), "[", name, "Entity[C], C](", strconv.Quote(string(w.service.Desc.FullName())), ",")
	for _, m := range w.service.Methods {
		how := "Asked"
		if oneWay(m) {
			how = "Told"
		}
		w.P(rpcPackage.Ident(how), "(", strconv.Quote(string(m.Desc.Name())), ", ", name, "Entity[C].", m.GoName, "),")
	}
	w.P(")")
	w.P("}")
	w.P()
}
