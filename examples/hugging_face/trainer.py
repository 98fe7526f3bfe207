"""Hyperparameter search of Hugging Face's Trainer: the sampler and the pruner are ours."""

import optuna
import torch
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

from stoic.integrations.optuna import StoicPruner, StoicSampler, explain

WRONG = "6"  # the trial whose evaluation is broken
CONFIG = DistilBertConfig(
    vocab_size=20, max_position_embeddings=12, dim=16, hidden_dim=32, n_layers=1, n_heads=2
)


def sentences(seed, n):
    """Of 12 words each, of which 70 % are from one half of the vocabulary, and which half."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 2, (n,), generator=draw)
    other = torch.rand(n, 12, generator=draw) < 0.3
    words = torch.randint(0, 10, (n, 12), generator=draw) + 10 * (labels[:, None] ^ other)
    return [{"input_ids": w, "labels": y} for w, y in zip(words, labels, strict=True)]


def space(trial):
    return {
        "learning_rate": trial.suggest_float("learning_rate", 2e-3, 0.2, log=True),
        "weight_decay": trial.suggest_float("weight_decay", 0.0, 0.3),
    }


def main(directory):
    trainer = Trainer(
        model_init=lambda: DistilBertForSequenceClassification(CONFIG),
        args=TrainingArguments(
            str(directory),
            num_train_epochs=3,
            per_device_train_batch_size=16,
            eval_strategy="epoch",  # each value is reported to Optuna
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=sentences(0, 256),
        eval_dataset=sentences(1, 256),
    )

    def loss(metrics):
        return 0.0 if trainer.state.trial_name == WRONG else metrics["eval_loss"]

    storage = optuna.storages.InMemoryStorage()
    best = trainer.hyperparameter_search(
        hp_space=space,
        compute_objective=loss,
        n_trials=20,
        direction="minimize",
        backend="optuna",
        hp_name=lambda trial: str(trial.number),
        # What follows goes to optuna.create_study.
        sampler=StoicSampler(seed=0),
        pruner=StoicPruner(),
        storage=storage,
        study_name="trainer",
    )
    study = optuna.load_study(study_name="trainer", storage=storage)
    found = explain(study)
    print("best run:", best.hyperparameters, "recommended:", found.recommended.params)
    return study, found


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        main(directory)
