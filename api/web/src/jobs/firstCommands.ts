/** The first commands to type: a training that takes a minute on a CPU. */

/** Where the command looks for a service when nobody names one. */
const DEFAULT_ADDRESS = "http://127.0.0.1:8000"

export interface FirstCommands {
  command: string
  curl: string
}

export function firstCommands({ address, wantsToken }: { address: string; wantsToken: boolean }): FirstCommands {
  const url = address === DEFAULT_ADDRESS ? "" : ` --url ${address}`
  const login = wantsToken ? [`rankzero login${url}`] : []
  const train = { model: "resnet18", data: "digits", image_size: 32, epochs: 5, lr: 0.05 }
  return {
    command: [
      ...login,
      `rankzero submit --model resnet18 --data digits \\\n  --set image_size=32 --epochs 5 --lr 0.05${url}`,
    ].join("\n"),
    curl: [
      `curl ${address}/jobs`,
      ...(wantsToken ? ['-H "Authorization: Bearer $RANKZERO_TOKEN"'] : []),
      '-H "Content-Type: application/json"',
      `-d '{"train": ${JSON.stringify(train)}}'`,
    ].join(" \\\n  "),
  }
}
