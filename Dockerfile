# The operator's image for those who have a container engine. Without one,
# hack/image/build.sh packs the same files; both lay them out by that script.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN hack/image/build.sh root /out

FROM scratch
COPY --from=build /out/ /
USER 65532:65532
ENTRYPOINT ["/manager"]
