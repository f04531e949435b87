//! Templates and settings that are refused, and what a person is told then.

use bobbin_local_aws::Engine;

use crate::support::{FUNCTIONS, Folder, PROJECT, SMALL, SMALLS, map, settings};

#[tokio::test]
async fn unsupported_template_parts_name_their_place() {
    let folder = Folder::new();
    let small = std::fs::read_to_string(SMALL).unwrap();
    for (from, to, said) in [
        (
            "!FindInMap [Sizes, !Ref Days, word]",
            "!FindInMap [Sizes, !Ref Days, words]",
            "output Sized in the template: Fn::FindInMap: there is no Sizes, 7, words in Mappings",
        ),
        (
            "!Sub \"${Greeting}-${AWS::Region}\"",
            "!Join [\"-\", [!Ref Greeting, !Ref AWS::Region]]",
            "output Joined in the template: this engine does not implement Fn::Join, or not in this form",
        ),
        (
            "!Or [!Equals [!Ref Most, 1], !Equals [!Ref Most, 2]]",
            "!And [!Equals [!Ref Most, 1], !Equals [!Ref Greeting, hello]]",
            "condition AtMostTwo in the template: this engine does not implement Fn::And in a condition",
        ),
        (
            "!FindInMap [Sizes, !Ref Days, word]",
            "!FindInMap [Sizes, word]",
            "output Sized in the template: Fn::FindInMap needs a mapping and two keys",
        ),
        (
            "DeletionPolicy: RetainExceptOnCreate",
            "DeletionPolicy: Keep",
            "resource Plain in the template: DeletionPolicy must be one of Delete, Retain, RetainExceptOnCreate, Snapshot",
        ),
        (
            "UpdateReplacePolicy: Retain",
            "UpdateReplacePolicy: RetainExceptOnCreate",
            "resource Plain in the template: UpdateReplacePolicy must be one of Delete, Retain, Snapshot",
        ),
    ] {
        assert!(small.contains(from), "{from}");
        let changed = folder.0.join("template.yaml");
        std::fs::write(&changed, small.replace(from, to)).unwrap();
        let wanted = settings(&folder, &changed.display().to_string(), &SMALLS);
        let refused = Engine::start(wanted).await.err().unwrap().to_string();
        assert_eq!(refused, said);
    }
}

async fn refusal(change: impl FnOnce(&mut bobbin_local_aws::EngineSettings)) -> String {
    let folder = Folder::new();
    let mut settings = settings(&folder, PROJECT, &FUNCTIONS);
    change(&mut settings);
    Engine::start(settings).await.err().unwrap().to_string()
}

#[tokio::test]
async fn refused_start_says_what_to_fix() {
    let unknown = refusal(|settings| {
        settings.parameters.insert("Modell".to_owned(), "x".to_owned());
    });
    assert_eq!(unknown.await, "parameter Modell: the template does not declare it");
    let missing = refusal(|settings| {
        settings.functions.remove("Worker");
    });
    assert!(missing.await.starts_with("function Worker: the template declares it"));
    let unbuilt = refusal(|settings| {
        settings.functions.insert("Worker".to_owned(), "/nowhere/worker".into());
    });
    assert!(unbuilt.await.ends_with("build it first"));
    let absent = refusal(|settings| settings.template = "/nowhere/template.yaml".into());
    assert!(absent.await.contains("could not be read"));
    let pattern = refusal(|settings| {
        settings.parameters = map(&[("DiscordPublicKey", "not hex")]);
    });
    assert_eq!(
        pattern.await,
        "parameter DiscordPublicKey: it must be the public key of the developer portal (64 hex digits), or empty"
    );
    let days = refusal(|settings| settings.parameters = map(&[("LogRetentionDays", "31")]));
    assert_eq!(days.await, "parameter LogRetentionDays: its value is not one of AllowedValues");
    let share = refusal(|settings| settings.parameters = map(&[("Concurrency", "11")]));
    assert_eq!(share.await, "parameter Concurrency: its value is not one of AllowedValues");
    let mut most = settings(&Folder::new(), SMALL, &SMALLS);
    most.parameters = map(&[("Most", "6")]);
    assert_eq!(
        Engine::start(most).await.err().unwrap().to_string(),
        "parameter Most: it must be 0 to 5"
    );
    let unknown = refusal(|settings| settings.secrets = map(&[("Secret", "{}")]));
    assert_eq!(
        unknown.await,
        "secret Secret of the template could not be set up: the template does not declare it"
    );
    let folder = Folder::new();
    let mut quoted = settings(&folder, SMALL, &SMALLS);
    quoted.parameters = map(&[("Greeting", "with\"quote")]);
    let quoted = Engine::start(quoted).await.err().unwrap().to_string();
    assert!(quoted.contains("quotation marks") && !quoted.contains("with"), "{quoted}");
}
