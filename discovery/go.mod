module github.com/quorate/quorate/discovery

go 1.26.0
