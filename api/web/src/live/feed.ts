/** One event stream that heals: it comes back with the id of the last event, so that nothing is missed or told twice. */
import { EventSourceParserStream } from "eventsource-parser/stream"

import { isTopic, type News } from "./events"

/** `live`: events come. `connecting`: the first try. `broken`: it was there, or could not be had, and is tried again. */
export type Connection = "connecting" | "live" | "broken"

interface FeedOptions {
  /** Path of the stream with its filters: `/events?topics=jobs`. */
  path: string
  /** Asks the API; rejects for whatever is not an answer. */
  askFor: (path: string, init: RequestInit) => Promise<Response>
  onNews: (news: News) => void
  /** What is shown has to be read anew: the stream has begun, or can't tell what was missed. */
  onShow: () => void
  onConnection: (connection: Connection) => void
}

/** The service sends an id every 15 s at least; a stream silent for longer than this is a dead connection. */
const SILENCE_MS = 40_000
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 8_000

export class Feed {
  readonly #options: FeedOptions
  #lastId: string | undefined
  #wait_ms = FIRST_WAIT_MS
  #attempt: AbortController | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #connection: Connection | undefined

  constructor(options: FeedOptions) {
    this.#options = options
  }

  /** Connect, unless it is or is being done already. */
  open(): void {
    if (this.#attempt) return
    this.#stopWaiting()
    const attempt = new AbortController()
    this.#attempt = attempt
    if (this.#connection === undefined) this.#say("connecting")
    void this.#read(attempt)
  }

  /** Let go of the connection; `open` goes on from the last event. */
  close(): void {
    this.#stopWaiting()
    this.#attempt?.abort()
    this.#attempt = undefined
  }

  /** Do not wait any longer: the network is back, or a person asks. */
  retryNow(): void {
    this.#wait_ms = FIRST_WAIT_MS
    if (this.#timer !== undefined) this.open()
  }

  async #read(attempt: AbortController): Promise<void> {
    try {
      await this.#follow(attempt)
    } catch {
      // Refused, cut or silent: the answer is the same, to say so and to try again.
    }
    if (this.#attempt !== attempt) return
    attempt.abort()
    this.#attempt = undefined
    this.#say("broken")
    this.#timer = setTimeout(() => this.open(), this.#wait_ms * (0.75 + Math.random() / 2))
    this.#wait_ms = Math.min(2 * this.#wait_ms, LONGEST_WAIT_MS)
  }

  async #follow(attempt: AbortController): Promise<void> {
    const headers = new Headers({ Accept: "text/event-stream" })
    if (this.#lastId !== undefined) headers.set("Last-Event-ID", this.#lastId)
    const watchdog = new Watchdog(() => attempt.abort())
    try {
      const response = await this.#options.askFor(this.#options.path, {
        headers,
        signal: attempt.signal,
        cache: "no-store",
      })
      if (!response.body) return
      const heard = new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, controller) {
          watchdog.heard()
          controller.enqueue(bytes)
        },
      })
      const events = response.body
        .pipeThrough(heard)
        .pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>)
        .pipeThrough(new EventSourceParserStream())
        .getReader()
      for (;;) {
        const { done, value } = await events.read()
        if (done || this.#attempt !== attempt) return
        // The id first: what a listener makes of an event must not bring the same one again for ever.
        if (value.id !== undefined) this.#lastId = value.id
        this.#take(value.event, value.data)
      }
    } finally {
      watchdog.stop()
    }
  }

  /** A listener that fails is a fault of the page's, to be seen as one, and none of the connection's. */
  #take(name: string | undefined, text: string): void {
    try {
      this.#tell(name, text)
    } catch (error) {
      reportError(error)
    }
  }

  #tell(name: string | undefined, text: string): void {
    if (name === "hello") {
      this.#wait_ms = FIRST_WAIT_MS
      this.#say("live")
      this.#options.onShow()
    } else if (name === "reset") {
      this.#options.onShow()
    } else if (name !== undefined && isTopic(name)) {
      // By the service's own schema; a topic of a later release was passed over.
      this.#options.onNews({ topic: name, data: JSON.parse(text) as unknown } as News)
    }
  }

  #say(connection: Connection): void {
    if (connection === this.#connection) return
    this.#connection = connection
    this.#options.onConnection(connection)
  }

  #stopWaiting(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

/** Calls `onSilence` when nothing was heard for `SILENCE_MS`. */
class Watchdog {
  #timer: ReturnType<typeof setTimeout>

  constructor(readonly onSilence: () => void) {
    this.#timer = setTimeout(onSilence, SILENCE_MS)
  }

  heard(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.onSilence, SILENCE_MS)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
