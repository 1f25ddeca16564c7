module github.com/quorate/quorate/discovery/dns

go 1.26.0

require github.com/quorate/quorate/internal/patience v0.0.0

require (
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

require (
	github.com/miekg/dns v1.1.73
	github.com/quorate/quorate/config/field v0.0.0
	github.com/quorate/quorate/discovery v0.0.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/net v0.62.0
)

replace (
	github.com/quorate/quorate/config/field => ../../config/field
	github.com/quorate/quorate/discovery => ..
	github.com/quorate/quorate/internal/patience => ../../internal/patience
)
