// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/quorate/quorate/management"
)

// Commands that ask a node share the flags in [RemoteFlags]. A request is sent by a client
// without proxies or redirects ([RemoteFlags.client]), and its answer or failure is put into
// words for an operator.

// maxAnswerBytes bounds how much of an answer is read: a node with 10,000 members sends a
// tenth of it.
const maxAnswerBytes = 32 << 20

// RemoteFlags holds the flags of commands that ask a running node.
type RemoteFlags struct {
	Node        string        `default:"http://127.0.0.1:8080" placeholder:"URL" help:"The management address of a node, or unix:// and the path of its socket (${default})."`
	Timeout     time.Duration `default:"5s" help:"How long to wait for the answer (${default})."`
	Certificate string        `placeholder:"FILE" help:"Certificate to show to a node with TLS."`
	Key         string        `placeholder:"FILE" help:"Key of the certificate."`
	Authorities string        `placeholder:"FILE" help:"Who may have signed the certificate of the node."`
	TokenFile   string        `placeholder:"FILE" help:"File with the token of an operator."`

	kept *keptConnection // Nil: each request has a connection of its own.
}

const (
	// unixScheme begins the address of a node that is asked over a Unix socket.
	unixScheme = "unix://"
	// keptIdle is how long a connection is kept without a request: longer than any pause of quorate top.
	keptIdle = 2 * time.Minute
	// maxTokenBytes bounds the file of a token.
	maxTokenBytes = 4 << 10
)

// defaultNode is the default of [RemoteFlags.Node].
const defaultNode = "http://127.0.0.1:8080"

// use has the node asked that was named without the flag; "" for none.
func (r *RemoteFlags) use(named string) error {
	switch {
	case named == "":
		return nil
	case !strings.Contains(named, "://"):
		return RejectedError{Text: fmt.Sprintf("%q is no management address: the node is asked itself, as in http://10.0.0.7:8080 or unix:///run/bank/operators", named)}
	case r.Node != defaultNode && r.Node != named:
		return RejectedError{Text: fmt.Sprintf("both %q and -node %q were given: name one node", named, r.Node)}
	}
	r.Node = named
	return nil
}

// get sends a GET for a path, decodes the answer into a value, and returns the raw answer
// too.
func (r *RemoteFlags) get(path string, query url.Values, into any) (json.RawMessage, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return r.ask(http.MethodGet, path, nil, http.NoBody, into)
}

// operate sends a request that changes something on the node.
func (r *RemoteFlags) operate(path, operation string, into any) (json.RawMessage, error) {
	return r.tell(path, operation, http.NoBody, into)
}

// tell sends a request that changes something on the node, with a body.
func (r *RemoteFlags) tell(path, operation string, body io.Reader, into any) (json.RawMessage, error) {
	return r.ask(http.MethodPost, path, http.Header{management.OperatorHeader: {operation}}, body, into)
}

// ask sends a request, decodes the answer into a value, and returns the raw answer too.
func (r *RemoteFlags) ask(method, target string, header http.Header, body io.Reader, into any) (json.RawMessage, error) {
	status, text, err := r.send(method, target, header, body)
	if err != nil {
		return nil, err
	}
	base, err := r.base()
	if err != nil {
		return nil, err
	}
	return read(base, status, text, into)
}

// send sends a request, and returns the status and the text of the answer, of which there is one byte too
// much if it is longer than answers are.
func (r *RemoteFlags) send(method, target string, header http.Header, body io.Reader) (status int, text []byte, err error) {
	base, err := r.base()
	if err != nil {
		return 0, nil, err
	}
	client, done, err := r.borrow()
	if err != nil {
		return 0, nil, err
	}
	answered := false
	defer func() { done(!answered) }()
	ctx, cancel := context.WithTimeout(context.Background(), r.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, base+target, body)
	if err != nil {
		return 0, nil, RejectedError{Text: err.Error()}
	}
	maps.Copy(request.Header, header)
	if err := r.identify(request); err != nil {
		return 0, nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, r.unreachable(base, err)
	}
	defer func() { _ = response.Body.Close() }() // The body was read, or is of no use.
	text, err = io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err != nil {
		return 0, nil, r.unreachable(base, err)
	}
	answered = true
	return response.StatusCode, text, nil
}

// refusedError is the error of a request that a node has answered, and refused.
type refusedError struct {
	status int // The status of HTTP.
	text   string
	raw    json.RawMessage // The answer, which is a [management.Failure].
}

// Error returns what the node has said.
func (r *refusedError) Error() string { return r.text }

// identify shows the token of an operator, if there is one.
func (r *RemoteFlags) identify(request *http.Request) error {
	if r.TokenFile == "" {
		return nil
	}
	file, err := os.Open(r.TokenFile)
	if err != nil {
		return RejectedError{Text: fmt.Sprintf("-token-file: %v", err)}
	}
	defer file.Close() //nolint:errcheck // It was only read.
	text, err := io.ReadAll(io.LimitReader(file, maxTokenBytes+1))
	if err != nil {
		return RejectedError{Text: fmt.Sprintf("-token-file: %v", err)}
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(text) > maxTokenBytes || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return RejectedError{Text: fmt.Sprintf("-token-file %s does not hold one token, of letters, digits and signs without spaces", r.TokenFile)}
	}
	request.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// read decodes an answer, or turns it into an error.
func read(base string, status int, text []byte, into any) (json.RawMessage, error) {
	strange := func(why string) error {
		return fmt.Errorf("%s does not answer as a node does (status %d, %s): is it the management address of one?", base, status, why)
	}
	if len(text) > maxAnswerBytes {
		return nil, strange(fmt.Sprintf("more than %d bytes", maxAnswerBytes))
	}
	if status != http.StatusOK {
		var failure management.Failure
		if err := json.Unmarshal(text, &failure); err != nil || failure.Error == "" {
			return nil, strange("no error in JSON")
		}
		return nil, &refusedError{status: status, raw: text, text: printable(strings.Join(append([]string{failure.Error}, failure.Reasons...), ": "))}
	}
	if err := json.Unmarshal(text, into); err != nil {
		return nil, strange(err.Error())
	}
	return text, nil
}

// base returns the URL of the node without a path.
func (r *RemoteFlags) base() (string, error) {
	text := r.Node
	if strings.HasPrefix(text, unixScheme) {
		return "http://localhost", nil // The name is that of this machine, where the socket is.
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return "", RejectedError{Text: fmt.Sprintf(`-node %q is not the address of a node: it is as in http://127.0.0.1:8080`, r.Node)}
	}
	return u.Scheme + "://" + u.Host, nil
}

// client returns a client that connects directly to the node.
func (r *RemoteFlags) client() (*http.Client, error) {
	if r.Timeout <= 0 {
		return nil, RejectedError{Text: fmt.Sprintf("-timeout %v is not above 0", r.Timeout)}
	}
	// No proxy: the node is near, or a tunnel leads to it. Commands ask one thing after the other.
	transport := &http.Transport{MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1, IdleConnTimeout: keptIdle}
	if path, ok := strings.CutPrefix(r.Node, unixScheme); ok {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	if r.Certificate != "" || r.Key != "" || r.Authorities != "" {
		security, err := r.security()
		if err != nil {
			return nil, RejectedError{Text: err.Error()}
		}
		transport.TLSClientConfig = security
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // A node redirects to no other place.
	}, nil
}

// security reads the files of the client's certificate.
func (r *RemoteFlags) security() (*tls.Config, error) {
	if r.Certificate == "" || r.Key == "" || r.Authorities == "" {
		return nil, errors.New("-certificate, -key and -authorities go together")
	}
	certificate, err := tls.LoadX509KeyPair(r.Certificate, r.Key)
	if err != nil {
		return nil, fmt.Errorf("-certificate %s with -key %s: %w", r.Certificate, r.Key, err)
	}
	pem, err := os.ReadFile(r.Authorities)
	if err != nil {
		return nil, fmt.Errorf("-authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("-authorities %s: no certificate in the file", r.Authorities)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: pool, MinVersion: tls.VersionTLS13}, nil
}

// unreachable says why there is no answer.
func (r *RemoteFlags) unreachable(base string, err error) error {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return fmt.Errorf("no answer from %s within %v", base, r.Timeout)
	}
	if cause, ok := errors.AsType[*url.Error](err); ok {
		err = cause.Err // The error says the rest already.
	}
	if strings.HasPrefix(r.Node, unixScheme) {
		base = r.Node
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("no node answers at %s: %w: does it run, and with this management.address?", base, err)
	}
	return fmt.Errorf("no answer from %s: %w", base, err)
}
