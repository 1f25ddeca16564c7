// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package typed_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects makes a test fail: those of typed entities one of this package, those of what clients and
// entities have in common one of package rpc, those of the generator one of its own.
func TestMutantsAreCaught(t *testing.T) {
	const typed, adapter = "sharding/typed/typed.go", "sharding/typed/adapter.go"
	const call, client, faults, service, generator = "rpc/call.go", "rpc/client.go", "rpc/errors.go", "rpc/service.go", "rpc/internal/generate/generate.go"
	const unmarshal, pieces = "rpc/unmarshal.go", "TestListsInManyPiecesAreRefused"
	const reach, later, another = "TestTypedClientsReachTypedEntities", "TestLaterMethodsAreRefusedAndHarmNobody", "TestAnotherServiceIsRefused"
	const finds, decodes, proto, replies, over = "TestServiceFindsItsMethods", "TestServiceDecodesWhatItKnows", "TestCallsAndRepliesAreTheirProto", "TestAskTurnsRepliesIntoMessages", "TestFieldsOfLaterVersionsArePassedOver"
	var all []simulationtest.Mutant
	type mutant struct{ name, test, file, old, to string }
	for _, p := range []struct {
		tests   string // The directory of the tests.
		mutants []mutant
	}{
		{".", []mutant{
			{"a method that nobody knows ends its entity", later, service, "		return &Reply{Fault: unknown(s.name, call.Method)}, nil\n", "		if mutant(NAME) {\n			return nil, unknown(s.name, call.Method)\n		}\n		return &Reply{Fault: unknown(s.name, call.Method)}, nil\n"},
			{"a one-way call that nobody knows is not counted", later, service, "		if oneWay {\n", "		if oneWay && !mutant(NAME) {\n"},
			{"a refusal ends its entity", reach, service, "; refused {\n", "; refused && !mutant(NAME) {\n"},
			{"a failure is a refusal", reach, service, "			if err != nil {\n				return nil, err\n			}\n			return &Reply{Message", "			if err != nil && mutant(NAME) {\n				return &Reply{Fault: &Fault{Code: \"failed\", Text: err.Error()}}, nil\n			}\n			if err != nil {\n				return nil, err\n			}\n			return &Reply{Message"},
			{"a method without a reply is well", reach, service, "				err = errNoReply\n", "				err = errNoReply\n				if mutant(NAME) {\n					return &Reply{Message: PR(new(R))}, nil\n				}\n"},
			{"what is told is not handled", reach, typed, "	return c.region.Tell(ctx, id, call)\n", "	if mutant(NAME) {\n		return nil\n	}\n	return c.region.Tell(ctx, id, call)\n"},
			{"the code of a refusal stays on its node", reach, call, "		case faultCode:\n", "		case faultCode:\n			if mutant(NAME) {\n				return\n			}\n"},
			{"entities are not started", reach, adapter, "ok := any(a.entity).(sharding.Starter); ok {", "ok := any(a.entity).(sharding.Starter); ok && !mutant(NAME) {"},
			{"entities are not stopped", reach, adapter, "ok := any(a.entity).(sharding.Stopper); ok {", "ok := any(a.entity).(sharding.Stopper); ok && !mutant(NAME) {"},
			{"a start that failed is one", "TestATypedEntityMayFailToStart", adapter, "		return s.Start(c)\n", "		if err := s.Start(c); !mutant(NAME) {\n			return err\n		}\n"},
			{"no memory goes along", "TestTypedEntitiesTakeTheirMemoryAlong", adapter, "	case snapshots && times:\n", "	case mutant(NAME) && times:\n		return &timeouter[E]{a, t}\n	case snapshots && times:\n"},
			{"every entity hears of its receive timeout", "TestAdaptersHaveTheInterfacesOfTheirEntities", adapter, "	case snapshots:\n", "	case snapshots && mutant(NAME):\n		return &snapshotAdapter[E]{a, s, t}\n	case snapshots:\n"},
			{"a kind without entities hosts", later, typed, "ProxyOnly: create == nil}", "ProxyOnly: create == nil && !mutant(NAME)}"},
			{"all services are one", another, typed, "\"rpc \" + c.service }", "\"rpc \" + map[bool]string{false: c.service}[mutant(NAME)] }"},
			{"spans have no names of methods", "TestSpansHaveTheNamesOfMethods", typed, "	if !ok {\n		return \"\"", "	if !ok || mutant(NAME) {\n		return \"\""},
			{"what cannot be encoded is sent", "TestWhatCannotBeEncodedIsNotSent", call, "		return dst, fmt.Errorf(\"rpc: %w: %w\", ErrInvalid, err)\n", "		if mutant(NAME) {\n			return dst, nil\n		}\n		return dst, fmt.Errorf(\"rpc: %w: %w\", ErrInvalid, err)\n"},
		}},
		{"../../rpc", []mutant{
			{"a refusal with more words is a failure", finds, service, "			if fault, refused := errors.AsType[*Fault](err)", "			if _, plain := err.(*Fault); mutant(NAME) && err != nil && !plain { //nolint:errorlint // The defect.\n				return nil, err\n			}\n			if fault, refused := errors.AsType[*Fault](err)"},
			{"a message of another type is handled", finds, service, "			if !ok {\n				return nil, fmt.Errorf(\"rpc: %s: %w: the message is a %T\", name, ErrInvalid, m)\n			}\n			reply,", "			if !ok && !mutant(NAME) {\n				return nil, fmt.Errorf(\"rpc: %s: %w: the message is a %T\", name, ErrInvalid, m)\n			}\n			reply,"},
			{"a refusal of a one-way call is dropped", finds, service, "			return nil, f(entity, c, typed)\n", "			err := f(entity, c, typed)\n			if _, refused := errors.AsType[*Fault](err); refused && mutant(NAME) {\n				err = nil\n			}\n			return nil, err\n"},
			{"who asks a one-way method waits for ever", finds, service, "&& !call.OneWay {", "&& !call.OneWay && !mutant(NAME) {"},
			{"a message that cannot be decoded is empty", decodes, service, "	if err := Unmarshal(encoded, call.Message); err != nil {", "	if err := Unmarshal(encoded, call.Message); err != nil && !mutant(NAME) {"},
			{"a call needs no method", decodes, call, "	if err == nil && method == \"\" {", "	if err == nil && method == \"\" && !mutant(NAME) {"},
			{"a one-way call is one that is asked", proto, call, "			oneWay = varint != 0\n", "			oneWay = varint != 0 && !mutant(NAME)\n"},
			{"a reply with neither message nor fault is one", over, call, "	case !found:\n", "	case !found && !mutant(NAME):\n"},
			{"a field of a later version is an error", over, call, "			n = protowire.ConsumeFieldValue(number, kind, b)\n", "			n = protowire.ConsumeFieldValue(number, kind, b)\n			if mutant(NAME) {\n				n = -1\n			}\n"},
			{"a reply keeps the bytes that were read", over, call, "			r.Encoded, found = append([]byte{}, value...), true\n", "			r.Encoded, found = append([]byte{}, value...), true\n			if mutant(NAME) {\n				r.Encoded = value\n			}\n"},
			{"a fault is as long as it likes", "TestFaultsAreBounded", faults, "	if len(s) > most {", "	if len(s) > most && !mutant(NAME) {"},
			{"half a letter at the end of a fault", "TestFaultsAreBounded", faults, "		s = strings.ToValidUTF8(s[:most], \"\")\n", "		s = s[:most]\n		if !mutant(NAME) {\n			s = strings.ToValidUTF8(s, \"\")\n		}\n"},
			{"every refusal says that the method is not known", "TestFaultsSayWhatTheyAre", faults, "&& f.Code == CodeUnknownMethod", "&& (f.Code == CodeUnknownMethod || mutant(NAME))"},
			{"a refusal is a reply", replies, client, "	if reply.Fault != nil {", "	if reply.Fault != nil && !mutant(NAME) {"},
			{"a reply of another type is an empty one", replies, client, "	if reply.Message != nil {", "	if reply.Message != nil && !mutant(NAME) {"},
			{"a reply that cannot be decoded is an empty one", replies, client, "	if err := Unmarshal(reply.Encoded, out); err != nil {", "	if err := Unmarshal(reply.Encoded, out); err != nil && !mutant(NAME) {"},
			{"a list goes on in as many fields as it likes", pieces, unmarshal, "		if packed && (seen.add(number) || again) {\n", "		if packed && (seen.add(number) || again) && !mutant(NAME) {\n"},
			{"a message that comes twice begins its lists anew", pieces, unmarshal, "&& (seen.add(number) || again)\n", "&& (seen.add(number) || again) && !mutant(NAME)\n"},
			{"the messages of a list are one", pieces, unmarshal, "again = field.Cardinality() != protoreflect.Repeated &&", "again = (mutant(NAME) || field.Cardinality() != protoreflect.Repeated) &&"},
			{"extensions have no lists", pieces, unmarshal, "	if message.ExtensionRanges().Has(number) {\n", "	if message.ExtensionRanges().Has(number) && !mutant(NAME) {\n"},
			{"numbers one by one are pieces", pieces, unmarshal, "packed := typ == protowire.BytesType && ", "packed := (typ == protowire.BytesType || mutant(NAME)) && "},
			{"texts are pieces", pieces, unmarshal, "field.Kind() != protoreflect.StringKind &&", "(field.Kind() != protoreflect.StringKind || mutant(NAME)) &&"},
			{"what is told is asked", replies, client, "OneWay: true, Message: m", "OneWay: !mutant(NAME), Message: m"},
		}},
		{"../../rpc/internal/generate", []mutant{
			{"a stream of requests is a method", "TestRefusals", generator, "		if m.Desc.IsStreamingClient() ||", "		if m.Desc.IsStreamingClient() && !mutant(NAME) ||"},
			{"a stream of responses is a method", "TestRefusals", generator, "|| m.Desc.IsStreamingServer() {", "|| m.Desc.IsStreamingServer() && !mutant(NAME) {"},
			{"a one-way method answers", "TestGoldenCode", generator, "m.Output.Desc.FullName() == empty }", "m.Output.Desc.FullName() == empty && !mutant(NAME) }"},
			{"two files declare one name", "TestNamesOfTwoFilesMeet", generator, "other != \"\" {", "other != \"\" && !mutant(NAME) {"},
		}},
	} {
		for _, m := range p.mutants {
			all = append(all, simulationtest.Mutant{Name: m.name, Package: p.tests, Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}})
		}
	}
	simulationtest.RequireFound(t, "../..", all)
}
