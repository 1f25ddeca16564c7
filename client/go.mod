module github.com/quorate/quorate/client

go 1.26.0

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/quorate/quorate/config/field v0.0.0
	github.com/quorate/quorate/internal/patience v0.0.0
	github.com/quorate/quorate/rpc v0.0.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
	pgregory.net/rapid v1.3.0
)

require (
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261110000943-09e21b237f2c // indirect
)

replace (
	github.com/quorate/quorate/config/field => ../config/field
	github.com/quorate/quorate/internal/patience => ../internal/patience
	github.com/quorate/quorate/rpc => ../rpc
)
