module github.com/quorate/quorate/membership

go 1.26.0

require (
	github.com/quorate/quorate/discovery v0.0.0
	github.com/quorate/quorate/downing v0.0.0
	github.com/quorate/quorate/fd v0.0.0
	github.com/quorate/quorate/gossip v0.0.0
	github.com/quorate/quorate/internal/patience v0.0.0
	github.com/stretchr/testify v1.12.1
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/metric v1.47.0
	go.uber.org/goleak v1.3.0
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
	pgregory.net/rapid v1.3.0
)

require github.com/quorate/quorate/simulation v0.0.0

require github.com/quorate/quorate/config/field v0.0.0

require github.com/quorate/quorate/transport v0.0.0

require github.com/quorate/quorate/machine v0.0.0

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/sdk v1.47.0
	go.opentelemetry.io/otel/sdk/metric v1.47.0 // indirect
	go.opentelemetry.io/otel/trace v1.47.0
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261110000943-09e21b237f2c // indirect
)

replace (
	github.com/quorate/quorate/config/field => ../config/field
	github.com/quorate/quorate/discovery => ../discovery
	github.com/quorate/quorate/downing => ../downing
	github.com/quorate/quorate/fd => ../fd
	github.com/quorate/quorate/gossip => ../gossip
	github.com/quorate/quorate/internal/patience => ../internal/patience
	github.com/quorate/quorate/machine => ../machine
	github.com/quorate/quorate/simulation => ../simulation
	github.com/quorate/quorate/transport => ../transport
)
