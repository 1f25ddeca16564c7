// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/transport/memory"
)

// The stream of events of Akka and Pekko Management, in virtual time: what is so when it begins, what happens then,
// what is selected, and how it goes on after a connection is lost.

// told reads events, each its id, its name and its data, until one has a text.
func told(t *testing.T, lines <-chan string, until string) (events [][3]string) {
	t.Helper()
	var e [3]string
	for line := range lines {
		for i, field := range []string{"id: ", "event: ", "data: "} {
			if value, ok := strings.CutPrefix(line, field); ok {
				e[i] = strings.TrimSpace(value)
			}
		}
		if line != "" {
			continue
		}
		if e[1] != "" { // Beats have no name.
			events = append(events, e)
		}
		if strings.Contains(e[2], until) {
			return events
		}
		e = [3]string{}
	}
	require.Fail(t, "the stream has ended", "%v", events)
	return nil
}

// follow asks for the stream, and reads its lines as they come.
func follow(t *testing.T, c net.Conn, query, last string) <-chan string {
	t.Helper()
	scanner, lines := bufio.NewScanner(watchAt(t, c, "/cluster/domain-events"+query, last)), make(chan string, 1000)
	// Owned by the test: ends with the connection.
	go func() {
		defer close(lines)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	return lines
}

// member is a member as it stands in events.
func member(i, status string) string {
	return `"member":{"dataCenter":"east","roles":["backend"],"status":"` + status + `","uniqueAddress":{"address":"quorate://test@10.0.0.` + i + `:7946","longUid":` + i + `}}`
}

func TestScriptsForAkkaWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memory.NewNetwork()
		n := node(t, network, 1, "10.0.0.1:7946")
		p, s := feeding(t, n)
		require.NoError(t, n.AwaitUp(t.Context()))
		synctest.Wait()
		c := p.dial()
		all := follow(t, c, "", "")
		require.Equal(t, 1, s.Streams().Open)
		began := told(t, all, "LeaderChanged")
		require.Equal(t, "MemberUp", began[0][1])
		require.Equal(t, `{"type":"MemberUp",`+member("1", "Up")+`}`, began[0][2])
		require.JSONEq(t, `{"type":"LeaderChanged","address":"quorate://test@10.0.0.1:7946"}`, began[1][2])

		some := follow(t, p.dial(), "?type=MemberRemoved&type=ReachabilityEvent,MemberJoined", "")
		second := node(t, network, 2, "10.0.0.1:7946")
		require.NoError(t, second.AwaitUp(t.Context()))
		<-time.After(5 * time.Second)
		network.Cut(n.Self().Address, second.Self().Address)
		for range 200 {
			if <-time.After(50 * time.Millisecond); !n.State().Reachable(second.Self()) {
				break
			}
		}
		network.HealAll()
		<-time.After(5 * time.Second)
		require.NoError(t, second.Leave(t.Context()))
		var names []string
		for _, e := range told(t, some, "MemberRemoved") {
			names = append(names, e[1])
		}
		require.Equal(t, "MemberJoined UnreachableMember ReachableMember MemberRemoved", strings.Join(names, " "))

		happened := told(t, all, "MemberRemoved")
		require.Equal(t, `{"type":"MemberJoined",`+member("2", "Joining")+`}`, happened[0][2])
		last := happened[len(happened)-1]
		require.Contains(t, last[2], `{"type":"MemberRemoved",`+member("2", "Removed")+`,"previousStatus":"`)

		require.NoError(t, c.Close())
		again := told(t, follow(t, p.dial(), "?type=MemberEvent", happened[0][0]), "MemberRemoved")
		require.Equal(t, "MemberUp", again[0][1], "it goes on behind the event, and does not begin anew")
		gone := told(t, follow(t, p.dial(), "", "1f-7"), "LeaderChanged")
		require.Equal(t, "gap MemberUp LeaderChanged", gone[0][1]+" "+gone[1][1]+" "+gone[2][1], "what came before is told by what is so")
		synctest.Wait()
	})
}

// What selects nothing that there is, is refused.
func TestEventsForAkkaThatDoNotExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := feeding(t, node(t, memory.NewNetwork(), 1, "10.0.0.1:7946"))
		c := p.dial()
		require.Equal(t, http.StatusBadRequest, get(t, c, "/cluster/domain-events?type=MemberUp&type=Leader").StatusCode)
		require.NoError(t, c.Close())
	})
}
