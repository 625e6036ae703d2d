"""A Qwen-VL model as a policy: one class for the tiny model on a CPU and the 7B on a GPU.

Agent and teacher go through the same `encode`, `respond` and `score`; the teacher is this policy
wearing another weight change.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from gtr_turbo.core.batch import Scores, TokenRows, VisionInputs
from gtr_turbo.core.config import CriticConfig, LoraConfig, ModelConfig
from gtr_turbo.core.spans import count_thought_tokens
from gtr_turbo.core.turns import (
    Observation,
    PictureInputs,
    Prompt,
    Reply,
    SamplingSettings,
    picture_hash,
)
from gtr_turbo.errors import TaskError, VisionMismatchError
from gtr_turbo.ops.collate import left_padded
from gtr_turbo.ops.token_scores import mean_entropy, placed
from gtr_turbo.policies.base import AbstractPolicy, WeightChange
from gtr_turbo.policies.critic import ValueHead
from gtr_turbo.policies.generation import sample
from gtr_turbo.policies.loading import add_adapters, load_model, resolve_device
from gtr_turbo.policies.weights import WeightStore

NO_TOKEN = -1
"""Stands for a control token that a model family does not have."""
NUM_PICTURE_AXES = 3
PICTURE_CHANNELS = 3
"""Height, width and the three colours."""


@final
class VlmPolicy(AbstractPolicy):
    """Qwen2.5-VL or Qwen3-VL with a critic, trained by adapters or in full."""

    def __init__(self, model: ModelConfig, lora: LoraConfig, critic: CriticConfig) -> None:
        """Load `model.path`; adapters and critic draw their start from torch's global generator."""
        self.device = resolve_device(model.device)
        network, self._processor = load_model(model, self.device)
        self._trunk = critic.trunk
        own_adapter = critic.trunk == "own_adapter"
        self._model: Any = (
            add_adapters(network, lora, critic=own_adapter)
            if model.finetuning == "lora"
            else network
        )
        self._network: Any = network
        width = network.get_output_embeddings().weight.shape[1]  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
        self.critic = ValueHead(width, critic.hidden_sizes).to(self.device)
        self._weights = WeightStore(self._model, network, self.critic, model)
        self._image_id: int = network.config.image_token_id  # pyright: ignore[reportAttributeAccessIssue, reportAssignmentType]
        self._stop_ids, self._suppressed = self._special_tokens()
        self._template = lru_cache(maxsize=4096)(self._render)
        self._positions = lru_cache(maxsize=4096)(self._compute_positions)
        self._model.eval()

    # -- reading ---------------------------------------------------------------------------------

    @property
    def pad_token_id(self) -> int:
        """Token id that fills rows; masked everywhere."""
        return self._processor.tokenizer.pad_token_id

    @property
    def processor(self) -> Any:
        """The model's own processor."""
        return self._processor

    @property
    def network(self) -> Any:
        """The model itself, adapters inside."""
        return self._network

    def sampling(self, temperature: float, max_new_tokens: int) -> SamplingSettings:
        """Return the settings under which this policy samples and scores."""
        return SamplingSettings(
            temperature=temperature, max_new_tokens=max_new_tokens, suppressed=self._suppressed
        )

    def encode(self, observations: Sequence[Observation]) -> list[Prompt]:
        """Return the observations as token ids and patches, chat template included.

        Control tokens that an environment writes as text stay text. Raises TaskError for a picture
        that is none, VisionMismatchError when the processor's placeholders and patches disagree.
        """
        texts = [self._template(observation.prompt) for observation in observations]
        pictures = [observation.picture for observation in observations]
        for picture in pictures:
            _check_picture(picture)
        encoded = self._processor(text=texts, images=pictures, return_mm_token_type_ids=False)
        patches: Tensor = encoded["pixel_values"]
        grids: Tensor = encoded["image_grid_thw"]
        pieces = patches.split(grids.prod(dim=1).tolist())
        prompts: list[Prompt] = []
        for ids, piece, grid, picture in zip(
            encoded["input_ids"], pieces, grids.tolist(), pictures, strict=True
        ):
            token_ids = tuple(ids)
            shape = (int(grid[0]), int(grid[1]), int(grid[2]))
            inputs = PictureInputs(
                patches=piece.numpy().astype(np.float32), grid=shape, sha256=picture_hash(picture)
            )
            self._check_placeholders(token_ids, shape)
            first = token_ids.index(self._image_id)
            positions = self._positions(len(token_ids), first, shape)
            prompts.append(Prompt(token_ids=token_ids, position_ids=positions, picture=inputs))
        return prompts

    # -- acting ----------------------------------------------------------------------------------

    @torch.no_grad()
    def respond(
        self, prompts: Sequence[Prompt], sampling: SamplingSettings, generator: torch.Generator
    ) -> list[Reply]:
        """Return one sampled reply per prompt, with its behaviour log-probabilities (nats)."""
        drawn = sample(prompts, sampling, generator, forward=self._forward, logits=self._logits,
                       stop_ids=self._stop_ids, pad_id=self.pad_token_id)  # fmt: skip
        return [self.reply(ids, logprobs) for ids, logprobs in drawn]

    def reply(self, token_ids: Sequence[int], logprobs: np.ndarray | None = None) -> Reply:
        """Return sampled (or written) ids as a reply: text, spans and log-probabilities."""
        ids = list(token_ids)
        decode = self._processor.tokenizer.decode

        def prefix(count: int) -> int:
            return len(decode(ids[:count], skip_special_tokens=True))

        text: str = decode(ids, skip_special_tokens=True)
        values = np.zeros(len(ids)) if logprobs is None else logprobs
        return Reply(
            token_ids=tuple(ids),
            token_logprobs=values.astype(np.float32),
            text=text,
            num_thought_tokens=count_thought_tokens(text, len(ids), prefix),
            finished=ids[-1] in self._stop_ids,
        )

    def written_reply(self, text: str) -> Reply:
        """Return a demonstration as a reply, the end-of-turn token included."""
        ids = self._processor.tokenizer(self._plain(text), add_special_tokens=False)["input_ids"]
        return self.reply([*ids, self._processor.tokenizer.eos_token_id])

    # -- scoring ---------------------------------------------------------------------------------

    def score(
        self,
        rows: TokenRows,
        temperature: float,
        reference_temperature: float,
        *,
        values: bool,
        entropy: bool = False,
    ) -> Scores:
        """Return log-probabilities and, when asked, values and entropy of replies as given.

        Sums and softmaxes are float32 whatever the model's dtype. The distribution is the one that
        `respond` samples from: suppressed tokens removed, logits divided by the temperature.
        """
        rows = self._to_device(rows)
        self._check_rows(rows)
        hidden = self._hidden(rows)
        is_response = rows.is_response
        chosen = hidden[:, :-1][is_response[:, 1:]]
        targets = rows.token_ids[is_response]
        logits = self._logits(chosen)
        logprobs = (logits / temperature).log_softmax(dim=-1)
        picked = logprobs.gather(1, targets[:, None]).squeeze(1)
        if reference_temperature == temperature:
            reference = picked
        else:
            with torch.no_grad():
                other = (logits / reference_temperature).log_softmax(dim=-1)
                reference = other.gather(1, targets[:, None]).squeeze(1)
        return Scores(
            token_logprob=placed(picked, is_response),
            reference_token_logprob=placed(reference.detach(), is_response),
            entropy=mean_entropy(logprobs, is_response) if entropy else None,
            value=self._values(rows, hidden) if values else None,
        )

    @torch.no_grad()
    def value(self, prompts: Sequence[Prompt]) -> Float32[Tensor, " turn"]:
        """Return the critic's estimate for each prompt, on the CPU."""
        if not prompts:
            return torch.zeros(0)
        ids, mask, positions, vision = left_padded(prompts, self.pad_token_id)
        ids, mask, positions = (tensor.to(self.device) for tensor in (ids, mask, positions))
        with self._critic_adapter():
            hidden = self._forward(ids, mask, positions, vision)
        return self.critic(hidden[:, -1]).cpu()

    @contextmanager
    def training(self, *, dropout: bool) -> Iterator[None]:
        """Let `score` keep gradients; dropout layers act only when asked."""
        self._model.train()
        for module in self._model.modules():
            if isinstance(module, torch.nn.Dropout) and not dropout:
                module.eval()
        try:
            yield
        finally:
            self._model.eval()

    # -- weights ---------------------------------------------------------------------------------

    def policy_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Yield the trained weights of the policy, in a fixed order."""
        return self._weights.policy_parameters()

    def critic_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Yield the critic head's weights and, when it has one, its adapter's."""
        return self._weights.critic_parameters()

    def change(self) -> WeightChange:
        """Return ΔW of each trained weight against the run's start, float32, on the CPU."""
        return self._weights.change()

    def wearing(self, change: WeightChange) -> AbstractContextManager[None]:
        """Act with the start's weights plus `change`; the agent's own weights come back after."""
        return self._weights.wearing(change)

    def become(self, change: WeightChange) -> None:
        """Put the agent's own weights at the start's plus `change`; the critic stays."""
        self._weights.become(change)

    def fingerprint(self) -> str:
        """Return the sha256 of the policy's trained weights."""
        return self._weights.fingerprint()

    def save(self, directory: Path) -> None:
        """Write policy and critic weights: adapters in PEFT's layout, or full safetensors."""
        self._weights.save(directory)

    def load(self, directory: Path) -> None:
        """Read what `save` wrote; CheckpointError for any other set of weights."""
        self._weights.load(directory)

    def export(self, directory: Path) -> None:
        """Write a loadable model directory, adapters merged in. The policy is of no use after."""
        self._weights.fold_offset()
        network = self._network if self._model is self._network else self._model.merge_and_unload()
        network.save_pretrained(directory)
        self._processor.save_pretrained(directory)

    # -- inside ----------------------------------------------------------------------------------

    def _critic_adapter(self) -> AbstractContextManager[None]:
        return self._weights.critic_adapter() if self._trunk == "own_adapter" else nullcontext()

    def _forward(
        self,
        token_ids: Int64[Tensor, "turn seq"],
        attention_mask: Int64[Tensor, "turn _"],
        position_ids: Int64[Tensor, "3 turn seq"],
        vision: VisionInputs | None,
        **cache: Any,
    ) -> Float[Tensor, "turn seq model"]:
        """Return the last hidden states; the picture goes in with the prompt."""
        pictures: dict[str, Tensor] = {}
        if vision is not None:
            pictures = {"pixel_values": vision.patches.to(self.device),
                        "image_grid_thw": vision.grids.to(self.device)}  # fmt: skip
        output = self._network.model(
            input_ids=token_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            **pictures,
            **cache,
        )
        return output.last_hidden_state

    def _hidden(self, rows: TokenRows) -> Float[Tensor, "turn seq model"]:
        mask = (~rows.is_padding).long()
        return self._forward(rows.token_ids, mask, rows.position_ids.transpose(0, 1), rows.vision)

    def _values(
        self, rows: TokenRows, hidden: Float[Tensor, "turn seq model"]
    ) -> Float32[Tensor, " turn"]:
        """Return the critic's estimates; where its gradient stops is `critic.trunk`."""
        last = rows.is_prompt.sum(dim=1) - 1
        picked = hidden[torch.arange(rows.num_turns, device=self.device), last]
        if self._trunk == "own_adapter":
            with self._weights.critic_adapter():
                own = self._hidden(rows)
            picked = own[torch.arange(rows.num_turns, device=self.device), last]
        elif self._trunk == "frozen":
            picked = picked.detach()
        return self.critic(picked)

    def _logits(self, hidden: Float[Tensor, "token model"]) -> Float32[Tensor, "token vocab"]:
        logits = self._network.lm_head(hidden).float()
        if self._suppressed:
            suppressed = torch.tensor(self._suppressed, device=logits.device)
            logits = logits.index_fill(1, suppressed, -torch.inf)
        return logits

    def _to_device(self, rows: TokenRows) -> TokenRows:
        if self.device.type == "cpu":
            return rows
        return TokenRows(
            token_ids=rows.token_ids.to(self.device),
            position_ids=rows.position_ids.to(self.device),
            is_prompt=rows.is_prompt.to(self.device),
            is_thought=rows.is_thought.to(self.device),
            is_action=rows.is_action.to(self.device),
            vision=rows.vision,
        )

    def _special_tokens(self) -> tuple[frozenset[int], tuple[int, ...]]:
        """Return (ids that end a reply, ids that are never sampled).

        Never sampled: every control token that does not end a turn, every picture or video token,
        and rows of the output layer beyond the tokenizer's vocabulary.
        """
        tokenizer, network = self._processor.tokenizer, self._network
        configured = network.generation_config.eos_token_id
        stops = {configured} if isinstance(configured, int) else set(configured or ())
        stops.add(tokenizer.eos_token_id)
        control = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
        control |= {getattr(network.config, name, NO_TOKEN) for name in names}
        rows = network.get_output_embeddings().weight.shape[0]
        control |= set(range(len(tokenizer), rows))
        return frozenset(stops), tuple(sorted(i for i in control - stops if 0 <= i < rows))

    def _plain(self, text: str) -> str:
        """Return `text` with control tokens broken up, so that they stay text."""
        for token in self._processor.tokenizer.all_special_tokens + [
            str(token) for token in self._processor.tokenizer.added_tokens_decoder.values()
        ]:
            text = text.replace(token, f"{token[:1]} {token[1:]}")
        return text

    def _render(self, text: str) -> str:
        content = [{"type": "image"}, {"type": "text", "text": self._plain(text)}]
        return self._processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
        )

    def _compute_positions(
        self, length: int, first: int, grid: tuple[int, int, int]
    ) -> Int64[np.ndarray, "3 seq"]:
        """Return the model's own positions for a prompt of `length` with one picture at `first`."""
        num_picture = self._picture_tokens(grid)
        kinds = torch.zeros((1, length), dtype=torch.int32)
        kinds[0, first : first + num_picture] = 1
        ids = torch.zeros((1, length), dtype=torch.int64)
        positions, _ = self._network.model.get_rope_index(
            ids, mm_token_type_ids=kinds, image_grid_thw=torch.tensor([grid])
        )
        return positions[:, 0].numpy().astype(np.int64)

    def _picture_tokens(self, grid: tuple[int, int, int]) -> int:
        merge = self._network.config.vision_config.spatial_merge_size
        return grid[0] * grid[1] * grid[2] // merge**2

    def _check_placeholders(self, token_ids: tuple[int, ...], grid: tuple[int, int, int]) -> None:
        found, needed = token_ids.count(self._image_id), self._picture_tokens(grid)
        if found != needed:
            raise VisionMismatchError(
                f"a prompt has {found} picture tokens, its picture makes {needed} features.",
                hint="was the prompt truncated, or did an environment write picture tokens?",
            )

    def _check_rows(self, rows: TokenRows) -> None:
        """Refuse rows whose picture tokens do not match their pictures (design truth 1)."""
        merge = self._network.config.vision_config.spatial_merge_size
        found = (rows.token_ids == self._image_id).sum(dim=1).cpu()
        needed = rows.vision.grids.prod(dim=1) // merge**2
        if not torch.equal(found, needed):
            raise VisionMismatchError(
                f"picture tokens per turn {found.tolist()[:8]} do not match the pictures' features"
                f" {needed.tolist()[:8]}.",
                hint="were rows and pictures selected apart?",
            )


def _check_picture(picture: np.ndarray) -> None:
    """Raise TaskError unless `picture` is a non-empty RGB picture of bytes."""
    is_rgb = picture.ndim == NUM_PICTURE_AXES and picture.shape[-1] == PICTURE_CHANNELS
    if picture.dtype != np.uint8 or not is_rgb or picture.size == 0:
        raise TaskError(
            f"an environment shows a picture of type {picture.dtype} and shape {picture.shape}.",
            hint="a picture is a uint8 array of shape (height, width, 3), neither of them 0.",
        )
