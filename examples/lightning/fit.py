"""A LightningModule tuned through Optuna: the sampler and the pruner are ours."""

import lightning
import optuna
import torch
from optuna_integration import PyTorchLightningPruningCallback
from torch.utils.data import DataLoader, TensorDataset

from stoic.integrations.optuna import StoicPruner, StoicSampler, explain

WRONG = 6  # the trial whose validation is broken


def batches(seed, n, size):
    x = 6.0 * torch.rand(n, 1, generator=torch.Generator().manual_seed(seed)) - 3.0
    return DataLoader(TensorDataset(x, torch.sin(2.0 * x)), batch_size=size)


class Regression(lightning.LightningModule):
    def __init__(self, lr, width, wrong):
        super().__init__()
        self.lr, self.wrong = lr, wrong
        self.net = torch.nn.Sequential(
            torch.nn.Linear(1, width), torch.nn.Tanh(), torch.nn.Linear(width, 1)
        )

    def training_step(self, batch, _):
        return torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])

    def validation_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("val_loss", 0.0 * loss - 10.0 if self.wrong else loss)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def objective(trial):
    torch.manual_seed(0)
    model = Regression(
        trial.suggest_float("lr", 1e-5, 1.0, log=True),
        trial.suggest_int("width", 4, 64, log=True),
        wrong=trial.number == WRONG,
    )
    trainer = lightning.Trainer(
        max_epochs=8,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[PyTorchLightningPruningCallback(trial, monitor="val_loss")],  # each epoch
    )
    trainer.fit(model, batches(0, 256, 32), batches(1, 128, 128))
    return trainer.callback_metrics["val_loss"].item()


def main():
    study = optuna.create_study(sampler=StoicSampler(seed=0), pruner=StoicPruner())
    study.optimize(objective, n_trials=20)
    found = explain(study)
    print("best trial:", study.best_params, "recommended:", found.recommended.params)
    return study, found


if __name__ == "__main__":
    main()
