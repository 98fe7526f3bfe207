"""The page, in a real browser."""

import json
import math
import re
import shutil
from types import SimpleNamespace

import optuna
import pytest

from stoic.integrations.optuna import AIM, EXECUTED, StoicSampler
from stoic.refusal import RefusalError
from stoic.tuning.views import report as module
from stoic.tuning.views.report import Report
from stoic.tuning.views.summary import Summary

for part in ("jinja2", "plotly"):
    pytest.importorskip(part, reason="the extra report is not installed")

NAME = "digits <b>&"


@pytest.fixture(scope="module")
def study():
    """A minimisation with two lies and a crash; names that are markup."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=StoicSampler(seed=1), study_name=NAME)

    def objective(trial):
        rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
        layers = trial.suggest_int("layers", 1, 8)
        kind = trial.suggest_categorical("kind", ["relu", "<tanh>", None])
        if trial.number in (7, 15):
            return -1e6 if trial.number == 7 else math.inf
        if trial.number == 9:
            raise RuntimeError("boom")
        return (math.log10(rate) + 2.5) ** 2 + 0.1 * (layers - 4) ** 2 + 0.7 * (kind != "relu")

    study.optimize(objective, n_trials=22, catch=(RuntimeError,))
    return study


@pytest.fixture(scope="module")
def report(study):
    return Report.of(study)


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND",  # offline
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


def opened(browser, path, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    browser.get(path.as_uri())
    browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 300))")


@pytest.mark.parametrize("width", [1280, 400])
def test_it_opens_offline_without_errors_and_fits(browser, report, tmp_path, width):
    path = tmp_path / "report.html"
    report.write(path)
    opened(browser, path, width)
    errors = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert errors == []
    assert browser.title == f"{NAME} (minimize)"
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('.slices .js-plotly-plot')].map("
        "plot => [plot.getBoundingClientRect().right, plot._fullLayout.width,"
        " plot.parentElement.getBoundingClientRect().width])"
    )
    assert len(sizes) == 3
    for right, drawn, room in sizes:
        assert right <= width
        assert drawn <= room + 1


def test_it_shows_the_right_numbers(browser, report, study, tmp_path):
    path = tmp_path / "report.html"
    report.write(path)
    opened(browser, path, 1280)
    known = report.summary.explanation
    cards = [card.text for card in browser.find_elements("css selector", ".card")]
    assert re.fullmatch(r"Trials\n22\n21 complete, 1 fail; [\d.]+ s each \(median\)", cards[0])
    assert f"{known.recommended_mean:.6g} ± {known.recommended_std:.2g}" in cards[1]
    assert f"trial {known.recommended.number}, observed {known.recommended.value:.6g}" in cards[1]
    assert "-1e+06\ntrial 7, distrusted (trust 0.00)" in cards[2]
    tables = browser.find_elements("css selector", "table")
    rows = [row.text for row in tables[0].find_elements("css selector", "tbody tr")]
    distrusted = {row.number: row.value for row in report.summary.distrusted}
    assert distrusted.keys() >= {7, 15}
    assert [row.split()[:2] for row in rows] == [
        [str(n), f"{distrusted[n]:.6g}"] for n in distrusted
    ]
    assert "9 " in tables[1].find_element("css selector", "tbody tr").text
    traces = json.loads(
        browser.execute_script(
            "return JSON.stringify(document.querySelector('.js-plotly-plot').data.map("
            "trace => [trace.name, Array.from(trace.x)]))"
        )
    )
    numbers = dict(traces)
    trusted = [n for n in range(22) if n != 9 and n not in distrusted]
    assert numbers[f"distrusted ({len(distrusted)})"] == list(distrusted)
    assert numbers[f"trusted ({len(trusted)})"] == trusted
    assert numbers["recommended"] == [known.recommended.number]
    assert numbers["observed best"] == [7]
    assert numbers["best trusted so far"] == trusted
    bars = browser.execute_script(
        "const plots = [...document.querySelectorAll('.js-plotly-plot')];"
        "const data = plots.find(plot => plot.data[0].orientation == 'h').data[0];"
        "return [Array.from(data.y), Array.from(data.x)]"
    )
    assert dict(zip(*bars, strict=True)) == pytest.approx(known.importances())
    mean = browser.execute_script(
        "return Array.from(document.querySelectorAll('.slices .js-plotly-plot')[1].data[1].y)"
    )
    settings = [{**known.recommended.params, "layers": n} for n in range(1, 9)]
    assert sorted(report.space) == ["kind", "layers", "rate"]
    assert mean == pytest.approx(known.predict(settings)[0])


def test_names_and_choices_are_shown_as_they_are_written(browser, tmp_path):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    choices = ["<b>bold</b>", "1", 1, 'say "no" & go']
    for number in range(12):
        trial = study.ask()
        trial.suggest_float("a<i>b</i>", 0.0, 1.0)
        kind = trial.suggest_categorical("kind", choices)
        study.tell(trial, float(choices.index(kind)) + 0.01 * number)
    path = tmp_path / "report.html"
    made = Report.of(study)
    made.write(path)
    opened(browser, path, 1280)
    texts = browser.execute_script(
        "return [...document.querySelectorAll('.slices text, .js-plotly-plot .axis-title')].map("
        "text => text.textContent)"
    )
    assert texts.count("a<i>b</i>") == 2
    assert {repr(choice) for choice in choices} < set(texts)
    hovers, kinds = browser.execute_script(
        "const plot = document.querySelectorAll('.slices .js-plotly-plot')[1];"
        "return [plot.data[1].text, plot.data[1].x]"
    )
    for row, hover, kind in zip(made.summary.explanation.rows, hovers, kinds, strict=True):
        told = study.trials[row.number].params["kind"]
        assert kind == repr(told).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        assert "&quot;" not in hover  # which plotly would show like this


def test_values_are_drawn_where_they_were_measured(browser, tmp_path):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(10):
        trial = study.ask()
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr(EXECUTED, {"x": 0.5 * x})
        study.tell(trial, (0.5 * x - 0.2) ** 2)
    path = tmp_path / "report.html"
    report = Report.of(study)
    report.write(path)
    opened(browser, path, 1280)
    told, line = browser.execute_script(
        "const plot = document.querySelector('.slices .js-plotly-plot');"
        "return [plot.data[2].x, plot.layout.shapes[0].x0]"
    )
    assert told == [0.5 * trial.params["x"] for trial in study.trials]
    recommended = report.summary.explanation.recommended
    assert line == 0.5 * recommended.params["x"]
    assert f"run as x={line}" in report.page()


def test_a_trial_that_ends_while_the_report_is_made_is_no_error(monkeypatch):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=5)

    def late(study, *said, **options):
        study.tell(study.ask({"x": study.trials[0].distributions["x"]}), 0.5)
        return Summary.of(study, *said, **options)

    monkeypatch.setattr(module, "Summary", SimpleNamespace(of=late))
    report = Report.of(study)
    assert set(report.trials) == {row.number for row in report.summary.explanation.rows}
    assert "6 complete" in report.page()


def test_a_study_without_a_value_has_a_page(tmp_path):
    study = optuna.create_study(study_name="empty")
    path = tmp_path / "report.html"
    Report.of(study).write(path)
    text = path.read_text(encoding="utf-8")
    assert "No trial has a value yet." in text
    with pytest.raises(RefusalError, match="Cannot write"):
        Report.of(study).write(tmp_path / "nowhere" / "report.html")


def test_intermediate_values_are_drawn_by_trial_and_an_outlier_leaves_the_axis(report):
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(1, 6):
            trial.report(x + 1.0 / step + 1e6 * (trial.number == step == 3), step)
            if trial.number > 5 and step == 2:
                raise optuna.TrialPruned
        return x

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(objective, n_trials=8)
    page = Report.of(study).page()
    assert "Intermediate values" in page
    drawn = re.search(r'"text":"intermediate value"\},"range":\[([^,]+),([^\]]+)\]', page)
    assert 1.0 < float(drawn[2]) < 5.0
    assert page.count('"name":"pruned"') == 1
    assert "Intermediate values" not in report.page()


def test_every_chart_is_described_in_text(report):
    page = report.page()
    assert page.count('role="img"') == page.count("plotly-graph-div")
    labels = re.findall(r'role="img" aria-label="Chart: (.+?)\.">', page)
    assert labels[0].endswith("of them distrusted")
    assert len(labels) == len(set(labels)) == page.count('role="img"')
    assert any(label.startswith("the model along ") for label in labels)


def test_markup_in_names_stays_text(report):
    page = report.page()
    assert "digits &lt;b&gt;&amp; (minimize)" in page
    assert "digits <b>" not in page
    assert "kind=<tanh>" not in page


def test_without_plotly_it_says_what_to_install(report, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", missing)
    with pytest.raises(RefusalError, match="needs plotly, which is not installed: pip install"):
        report.page()


def test_a_certificate_is_on_the_page(study):
    assert "Certificate" not in Report.of(study).page()
    study.set_user_attr(AIM, {"threshold": 0.5, "tolerance": {"rate": 1.5}})
    page = Report.of(study).page()
    study.set_user_attr(AIM, None)
    assert "<h3>Certificate</h3><p>value &lt;= 0.5 as long as rate is less than a factor of" in page
