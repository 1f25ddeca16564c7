module github.com/quorate/quorate/plugins/plugintest

go 1.26.0

require (
	github.com/hashicorp/go-hclog v1.6.3 // indirect
	github.com/hashicorp/go-plugin v1.8.0
	github.com/quorate/quorate/allocation v0.0.0
	github.com/quorate/quorate/downing v0.0.0
	github.com/quorate/quorate/fd v0.0.0
	github.com/quorate/quorate/gossip v0.0.0
	github.com/quorate/quorate/internal/patience v0.0.0
	github.com/quorate/quorate/plugins v0.0.0
	github.com/stretchr/testify v1.12.1
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require github.com/quorate/quorate/discovery v0.0.0

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/hashicorp/yamux v0.1.2 // indirect
	github.com/mattn/go-colorable v0.1.16 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/oklog/run v1.2.0 // indirect
	github.com/quorate/quorate/config/field v0.0.0 // indirect
	github.com/quorate/quorate/machine v0.0.0 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	go.opentelemetry.io/otel/trace v1.47.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261110000943-09e21b237f2c // indirect
)

replace (
	github.com/quorate/quorate/allocation => ../../allocation
	github.com/quorate/quorate/config/field => ../../config/field
	github.com/quorate/quorate/discovery => ../../discovery
	github.com/quorate/quorate/downing => ../../downing
	github.com/quorate/quorate/fd => ../../fd
	github.com/quorate/quorate/gossip => ../../gossip
	github.com/quorate/quorate/internal/patience => ../../internal/patience
	github.com/quorate/quorate/machine => ../../machine
	github.com/quorate/quorate/plugins => ..
	github.com/quorate/quorate/simulation => ../../simulation
)
