/** Commands for a terminal and programs that speak to the service, as somebody can paste them. */

/** The service that they are for. */
export interface Service {
  /** Its address, without a slash at its end. */
  url: string
  /** Whether it asks for a token; the text of one never gets into a command. */
  asksForTokens: boolean
}

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"])

/** How a command for one service is written. */
export class Wording {
  readonly #service: Service
  /** By http, and not on this machine: the command sends a token there only when it is told to. */
  readonly #isInsecure: boolean

  constructor(service: Service) {
    this.#service = service
    const { protocol, hostname } = new URL(service.url)
    this.#isInsecure = service.asksForTokens && protocol === "http:" && !LOOPBACK.has(hostname)
  }

  /** Keep a token for the service; null where it asks for none. */
  login(): string | null {
    if (!this.#service.asksForTokens) return null
    return `rankzero login --url ${inQuotes(this.#service.url)}${this.#isInsecure ? " --insecure" : ""}`
  }

  cli(command: string): string {
    // Before any redirection, and behind the command's own words.
    const [words = command, into] = command.split(" > ")
    const trusted = this.#isInsecure ? "RANKZERO_INSECURE=1 " : ""
    return `${trusted}rankzero ${words} --url ${inQuotes(this.#service.url)}${into === undefined ? "" : ` > ${into}`}`
  }

  curl(path: string, flags = ""): string {
    return ["curl -sSf", flags, ...this.#authorization(), inQuotes(this.#service.url + path)]
      .filter((each) => each !== "")
      .join(" ")
  }

  /** With a body, which a shell looks for nothing in: no line of JSON is `BODY` alone. */
  curlWith(path: string, body: unknown): string {
    const flags = `-H 'Content-Type: application/json' --data-binary @-`
    return `${this.curl(path, flags)} <<'BODY'\n${JSON.stringify(body, null, 2)}\nBODY`
  }

  python(...lines: string[]): string {
    const insecure = this.#isInsecure ? ", insecure=True" : ""
    const token = this.#service.asksForTokens ? "  # its token is that of rankzero login, or RANKZERO_TOKEN" : ""
    const client = `client = Client(${JSON.stringify(this.#service.url)}${insecure})${token}`
    return ["from rankzero import Client", "", client, ...lines].join("\n")
  }

  #authorization(): string[] {
    return this.#service.asksForTokens ? [`-H "Authorization: Bearer $RANKZERO_TOKEN"`] : []
  }
}

/** A word of a shell's command, whatever stands in it. */
function inQuotes(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
