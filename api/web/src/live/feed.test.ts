import { afterEach, beforeEach, expect, test, vi } from "vitest"

import { Feed, type Connection } from "./feed"

/** A stream that the test writes into. */
class Line {
  #controller!: ReadableStreamDefaultController<Uint8Array>
  readonly headers: Headers
  readonly response: Response

  constructor(readonly init: RequestInit) {
    this.headers = new Headers(init.headers)
    this.response = new Response(
      new ReadableStream<Uint8Array>({
        start: (controller) => {
          this.#controller = controller
          init.signal?.addEventListener("abort", () => controller.error(new Error("aborted")))
        },
      }),
    )
  }

  send(event: string, data: unknown, id?: string): void {
    const text = `event: ${event}\ndata: ${JSON.stringify(data)}\n${id === undefined ? "" : `id: ${id}\n`}\n`
    this.#controller.enqueue(new TextEncoder().encode(text))
  }

  close(): void {
    this.#controller.close()
  }
}

function setUp() {
  const lines: Line[] = []
  const told: unknown[] = []
  const connections: Connection[] = []
  const onShow = vi.fn()
  let isAway = false
  const feed = new Feed({
    path: "/events",
    askFor: (_, init) => {
      if (isAway) return Promise.reject(new Error("away"))
      const line = new Line(init)
      lines.push(line)
      return Promise.resolve(line.response)
    },
    onNews: (news) => told.push(news.data),
    onShow,
    onConnection: (connection) => connections.push(connection),
  })
  return {
    feed,
    lines,
    told,
    connections,
    onShow,
    goAway: (away: boolean) => {
      isAway = away
    },
    last: () => {
      const line = lines.at(-1)
      if (!line) throw new Error("nothing has connected")
      return line
    },
  }
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test("news come after hello, which says that what is shown is to be read", async () => {
  const { feed, last, told, onShow, connections } = setUp()
  feed.open()
  await vi.advanceTimersByTimeAsync(0)
  last().send("hello", { position: "0-1" }, "0-1")
  last().send("jobs", { job_id: 7 }, "0-2")
  await vi.advanceTimersByTimeAsync(1)
  expect(onShow).toHaveBeenCalledTimes(1)
  expect(told).toEqual([{ job_id: 7 }])
  expect(connections).toEqual(["connecting", "live"])
  feed.close()
})

test("a lost stream comes back with the id of the last event", async () => {
  const { feed, lines, last, connections } = setUp()
  feed.open()
  await vi.advanceTimersByTimeAsync(0)
  last().send("hello", {}, "0-1")
  last().send("jobs", { job_id: 7 }, "0-2")
  await vi.advanceTimersByTimeAsync(1)
  last().close()
  await vi.advanceTimersByTimeAsync(2_000)
  expect(lines.length).toBe(2)
  expect(last().headers.get("Last-Event-ID")).toBe("0-2")
  last().send("hello", {}, "0-2")
  await vi.advanceTimersByTimeAsync(1)
  expect(connections).toEqual(["connecting", "live", "broken", "live"])
  feed.close()
})

test("a service that is away is tried again, ever more slowly, until it is there", async () => {
  const { feed, lines, last, goAway, connections } = setUp()
  goAway(true)
  feed.open()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(connections).toEqual(["connecting", "broken"])
  goAway(false)
  await vi.advanceTimersByTimeAsync(10_001)
  expect(lines.length).toBe(1)
  last().send("hello", {}, "0-1")
  await vi.advanceTimersByTimeAsync(1)
  expect(connections.at(-1)).toBe("live")
  feed.close()
})

test("a person who asks to try now does not wait", async () => {
  const { feed, lines, goAway } = setUp()
  goAway(true)
  feed.open()
  await vi.advanceTimersByTimeAsync(60_000)
  goAway(false)
  feed.retryNow()
  await vi.advanceTimersByTimeAsync(0)
  expect(lines.length).toBe(1)
  feed.close()
})

test("a stream on which nothing comes any more counts as lost", async () => {
  const { feed, lines, last } = setUp()
  feed.open()
  await vi.advanceTimersByTimeAsync(0)
  last().send("hello", {}, "0-1")
  await vi.advanceTimersByTimeAsync(45_000)
  expect(lines.length).toBe(2)
  feed.close()
})

test("after a reset what is shown is read anew", async () => {
  const { feed, last, onShow } = setUp()
  feed.open()
  await vi.advanceTimersByTimeAsync(0)
  last().send("hello", {})
  last().send("reset", {}, "0-9")
  await vi.advanceTimersByTimeAsync(1)
  expect(onShow).toHaveBeenCalledTimes(2)
  feed.close()
})

test("a feed that was closed does not come back, and opened again goes on from where it was", async () => {
  const { feed, lines, last, told } = setUp()
  feed.open()
  await vi.advanceTimersByTimeAsync(0)
  last().send("hello", {}, "0-5")
  await vi.advanceTimersByTimeAsync(1)
  feed.close()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(lines.length).toBe(1)
  feed.open()
  await vi.advanceTimersByTimeAsync(0)
  expect(last().headers.get("Last-Event-ID")).toBe("0-5")
  last().send("weather", { is: "fine" })
  await vi.advanceTimersByTimeAsync(1)
  expect(told).toEqual([])
  feed.close()
})
