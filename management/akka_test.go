// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
)

// The routes of Akka and Pekko Management, on a cluster of three in virtual time.

// akka asks one of these routes, with a form if there is one.
func akka(t *testing.T, n *membership.Node, method, path, operation, form string) (status int, body string) {
	t.Helper()
	status, _, text := operate(t, forAnybody(management.Akka(n)), func(r *http.Request) {
		r.Method, r.URL.Path = method, path
		r.Header.Set(management.OperatorHeader, operation)
		if form != "" {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(form)), int64(len(form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if boundary, _, ok := strings.Cut(strings.TrimPrefix(form, "--"), "\r\n"); ok {
				r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
			}
		}
	})
	return status, strings.TrimSpace(string(text))
}

// multi is a form as curl -F sends it.
func multi(name, value string) string {
	return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n--b--\r\n"
}

func TestScriptsForAkkaRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := three(t)
		n := nodes[1].n
		one := func(i string) string {
			return `{"node":"quorate://test@10.0.0.` + i + `:7946","nodeUid":"` + i + `","status":"Up","roles":["backend"]}`
		}
		for path, want := range map[string]string{
			"/cluster/members": `{"selfNode":"quorate://test@10.0.0.2:7946","members":[` + one("1") + "," + one("2") + "," + one("3") + `],"unreachable":[],` +
				`"leader":"quorate://test@10.0.0.1:7946","oldest":"quorate://test@10.0.0.1:7946","oldestPerRole":{"backend":"quorate://test@10.0.0.1:7946"}}`,
			"/bootstrap/seed-nodes": `{"selfNode":"quorate://test@10.0.0.2:7946","seedNodes":[` + one("1") + "," + one("2") + "," + one("3") + `]}`,

			"/cluster/members/10.0.0.3:7946": one("3"), "/cluster/members/test@10.0.0.3:7946": one("3"), "/cluster/members/self": one("2"),
		} {
			status, body := akka(t, n, http.MethodGet, path, "", "")
			require.Equal(t, 200, status, body)
			require.Equal(t, want, body, path)
		}
		for path, want := range map[string]string{
			"/cluster/members/10.0.0.9:7946":      `404 {"error":"10.0.0.9:7946 is not a member of this cluster, whose members are 10.0.0.1:7946, 10.0.0.2:7946, 10.0.0.3:7946"}`,
			"/cluster/members/shop@10.0.0.3:7946": `404 {"error":"\"shop@10.0.0.3:7946\" names another cluster than test"}`,
			"/cluster/members/x":                  `400 {"error":"\"x\" names no member: give its address, or its id, as /v1/members has them, or self"}`,
		} {
			status, body := akka(t, n, http.MethodGet, path, "", "")
			require.Equal(t, want, fmt.Sprint(status, " ", body))
		}
		require.NoError(t, nodes[2].n.Close())
		<-time.After(6 * time.Second)
		_, body := akka(t, n, http.MethodGet, "/cluster/members", "", "")
		require.Contains(t, body, `"unreachable":[{"node":"quorate://test@10.0.0.3:7946","observedBy":["quorate://test@10.0.0.`)
		_, body = akka(t, n, http.MethodGet, "/bootstrap/seed-nodes", "", "")
		require.NotContains(t, body, "10.0.0.3")
	})
}

// Writes are those of operators, with the same refusals; a path answers the methods that it has.
func TestScriptsForAkkaWrite(t *testing.T) {
	for _, route := range management.Akka(nil) {
		require.Equal(t, route.Operation != "", route.Authorized, route.Path)
	}
	synctest.Test(t, func(t *testing.T) {
		network, nodes := three(t)
		n := nodes[0].n
		lonely := node(t, network, 4)
		for _, test := range []struct {
			of                            *membership.Node
			method, path, operation, form string
			status                        int
			says                          string
		}{
			{n, "PATCH", "/cluster/members", "", "", 405, "this only answers GET, HEAD, POST"},
			{n, "PUT", "/cluster/members", "join", "", 405, "GET, HEAD, POST"},
			{n, "POST", "/cluster/members/self", "leave", "", 405, "DELETE, GET, HEAD, PUT"},
			{n, "DELETE", "/cluster/members/self", "down", "", 403, "Quorate-Operator: leave"},
			{n, "PUT", "/cluster/members/self", "down", "operation=Down", 403, "Quorate-Operator: member"},
			{n, "PUT", "/cluster/members/self", "member", "operation=Down", 409, "is the node that was asked"},
			{n, "PUT", "/cluster/members/self", "member", "operation=Fly", 400, "neither Leave nor Down"},
			{n, "PUT", "/cluster/members/self", "member", "", 400, "not a form"},
			{n, "PUT", "/cluster/members/self", "member", "operation=%zz", 400, "not a form"},
			{n, "PUT", "/cluster/members/self", "member", "--b\r\nbroken", 400, "not a form"},
			{n, "PUT", "/cluster/members/10.0.0.9:7946", "member", "operation=Leave", 404, "not a member"},
			{n, "PUT", "/cluster/members/10.0.0.2:7946", "member", "operation=Leave&x=" + strings.Repeat("x", 5000), 413, "more than 4096"},
			{n, "PUT", "/cluster", "shutdown-cluster", "operation=Fly", 400, "not Prepare-for-full-shutdown"},
			{n, "PUT", "/cluster", "shutdown-cluster", "", 400, "not a form"},
			{n, "PUT", "/cluster", "shutdown-cluster", "operation=Prepare-for-full-shutdown", 409, "cannot be taken back"},
			{n, "POST", "/cluster/members", "join", "address=10.0.0.4:7946", 409, "already"},
			{lonely, "POST", "/cluster/members", "join", "address=akka://shop@10.0.0.1:7946", 409, "not to"},
			{lonely, "POST", "/cluster/members", "join", "address=", 400, "host:port"},
			{lonely, "POST", "/cluster/members", "join", "address=akka://test@10.0.0.1:7946", 200, `{"message":"Joining akka://test@10.0.0.1:7946"}`},
			{n, "PUT", "/cluster/members/10.0.0.3:7946", "member", multi("operation", "Down"), 200, `{"message":"Downing quorate://test@10.0.0.3:7946"}`},
			{n, "PUT", "/cluster/members/10.0.0.2:7946", "member", "operation=leave", 200, `{"message":"Leaving quorate://test@10.0.0.2:7946"}`},
		} {
			status, body := akka(t, test.of, test.method, test.path, test.operation, test.form)
			require.Equal(t, test.status, status, "%s %s: %s", test.method, test.path, body)
			require.Contains(t, body, test.says)
			if status == 200 {
				<-time.After(30 * time.Second)
			}
		}
		require.ErrorIs(t, nodes[2].n.Err(), membership.ErrDown)
		require.Nil(t, n.State().ByAddress(nodes[1].n.Self().Address), "it has left")
		require.NotNil(t, lonely.View().Member())
		status, body := akka(t, lonely, "DELETE", "/cluster/members/test@10.0.0.1:7946", "leave", "")
		require.Equal(t, 200, status, body)
		require.JSONEq(t, `{"message":"Leaving quorate://test@10.0.0.1:7946"}`, body)
		<-time.After(30 * time.Second)
		require.Nil(t, lonely.State().ByAddress(n.Self().Address), "it has left")
		status, body = akka(t, lonely, "PUT", "/cluster", "shutdown-cluster", "operation=prepare-for-full-shutdown&force=true")
		require.Equal(t, 200, status, body)
		<-time.After(5 * time.Second)
		status, body = akka(t, lonely, "GET", "/cluster/members/self", "", "")
		require.Equal(t, 200, status, body)
		require.Contains(t, body, `"status":"ReadyForShutdown"`)
	})
}
