/** The first commands to type: a training that takes a minute on a CPU. */
import { Wording, type Service } from "../format/commands"

interface FirstCommands {
  command: string
  curl: string
}

export function firstCommands(service: Service): FirstCommands {
  const to = new Wording(service)
  const train = { model: "resnet18", data: "digits", image_size: 32, epochs: 5, lr: 0.05 }
  const submit = to.cli("submit --model resnet18 --data digits \\\n  --set image_size=32 --epochs 5 --lr 0.05")
  return {
    command: [to.login(), submit].filter((line) => line !== null).join("\n"),
    curl: to.curlWith("/jobs", { train }),
  }
}
